package service

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/tcp"
)

// Errors of data hosts. Callers should test for them with [errors.Is]. A [*HostError] contains the
// address of the host.
var (
	// ErrMismatch is wrapped if a data host serves another data set, seed, batch size or order than
	// the others.
	ErrMismatch = errors.New("service: data host serves other data than the others")
	// ErrNoHost is wrapped if no data host could be reached within Options.Patience.
	ErrNoHost = errors.New("service: no data host available")
	// ErrSilent is wrapped if a connected data host sent nothing within Options.Patience.
	ErrSilent = errors.New("service: data host does not respond")
	// ErrExpired is wrapped if a Dynamic trainer acknowledges a batch that was assigned to another
	// one, because this one was silent or partitioned.
	ErrExpired = errors.New("service: batch was reassigned to another trainer")
	// ErrLedger is wrapped if the ledger of a data host cannot be read or written, or if the first
	// data host of Dynamic trainers restarted without it.
	ErrLedger = errors.New("service: ledger of acknowledged batches unavailable")
	// ErrCertificate is wrapped if a trainer rejects the certificate of a data host, because of
	// Options.TLS or Options.Fingerprint, or if a data host rejects the certificate of a trainer.
	ErrCertificate = tcp.ErrCertificate
	// ErrOptions is wrapped if options contradict each other or the served data.
	ErrOptions = errors.New("service: invalid options")
)

// Registered errors keep their identity for [errors.Is] when a worker returns them to its parent
// process.
func init() {
	codec.RegisterError("service.ErrLedger", ErrLedger)
	codec.RegisterError("service.ErrCertificate", ErrCertificate)
	codec.RegisterError("service.ErrOptions", ErrOptions)
	codec.RegisterError("service.ErrMismatch", ErrMismatch)
	codec.RegisterError("service.ErrNoHost", ErrNoHost)
	codec.RegisterError("service.ErrSilent", ErrSilent)
	codec.RegisterError("service.ErrExpired", ErrExpired)
}

// A HostError is an error of a data host.
type HostError struct {
	Host   string // address
	Advice string // remedy; may be empty
	Err    error
}

// Error returns the host, the cause and the advice in one line.
func (e *HostError) Error() string {
	s := fmt.Sprintf("data host %s: %v", e.Host, e.Err)
	if e.Advice != "" {
		s += "; " + e.Advice
	}
	return s
}

// Unwrap returns Err.
func (e *HostError) Unwrap() error { return e.Err }

// hostError returns err as a [*HostError] with a suitable remedy. It returns an existing HostError
// in the chain of err unchanged.
func hostError(host string, err error) *HostError {
	if e := new(HostError); errors.As(err, &e) {
		return e
	}
	e := &HostError{Host: host, Err: err}
	switch {
	case errors.Is(err, ipc.ErrKey):
		e.Advice = "give all data hosts and trainers the same key"
	case errors.Is(err, ErrExpired):
		e.Advice = "discard the results of the batch; find out why this trainer did not respond, or raise " +
			"HostOptions.Patience"
	case errors.Is(err, ErrLedger):
		e.Advice = "check its HostOptions.Ledger and the disk; after a change of the ledger, dial again and " +
			"restart the epoch"
	case errors.Is(err, tcp.ErrFingerprint):
		e.Advice = "set Options.Fingerprint to the result of Host.Fingerprint there, unless another server " +
			"answers at this address"
	case errors.Is(err, ErrCertificate):
		e.Advice = "compare the TLS options of both sides: RootCAs and ServerName verify the data host, ClientCAs " +
			"and Certificates the trainer"
	case errors.Is(err, ipc.ErrPeer), errors.Is(err, ipc.ErrType):
		e.Advice = "run the same version of Shoal there, check that the address is one of service.Listen, " +
			"and set Unencrypted on both sides or on none"
	case errors.Is(err, ErrMismatch):
		e.Advice = "start it with the same data set and options as the others"
	case errors.Is(err, ErrSilent):
		e.Advice = "check whether it is stopped, overloaded or unreachable, or raise Options.Patience"
	}
	return e
}

// isFatal reports whether another connection attempt would be futile.
func isFatal(err error) bool {
	return errors.Is(err, ipc.ErrKey) || errors.Is(err, ipc.ErrPeer) || errors.Is(err, ipc.ErrType) ||
		errors.Is(err, ErrMismatch) || errors.Is(err, ErrCertificate) || errors.Is(err, ErrLedger)
}
