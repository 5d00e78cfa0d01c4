package service

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/wire"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/tcp"
)

// Errors of data hosts. Test for them with errors.Is; a *HostError has the address.
var (
	// ErrMismatch is wrapped where a data host serves something else than the others: another data
	// set, seed, batch size or order.
	ErrMismatch = errors.New("service: this data host serves something else than the others")
	// ErrNoHost is wrapped where no data host could be reached within Options.Patience.
	ErrNoHost = errors.New("service: no data host is left")
	// ErrSilent is wrapped where a data host that is connected said nothing within
	// Options.Patience.
	ErrSilent = errors.New("service: the data host is silent")
	// ErrExpired is wrapped where a Dynamic trainer acknowledges a batch that was given to another
	// one, because this one was silent or cut off meanwhile.
	ErrExpired = errors.New("service: the batch was given to another trainer meanwhile")
	// ErrLedger is wrapped where the ledger of a data host cannot be read or written, or the first
	// data host of Dynamic trainers has come back without it.
	ErrLedger = errors.New("service: the ledger of acknowledged batches is lost")
	// ErrCertificate is wrapped where a trainer refuses the certificate of a data host by
	// Options.TLS or Options.Fingerprint, or a data host that of a trainer.
	ErrCertificate = tcp.ErrCertificate
	// ErrOptions is wrapped where options contradict each other or what is served.
	ErrOptions = errors.New("service: options do not fit")
)

// errors.Is finds them in the starter of the worker that returns them.
func init() {
	wire.RegisterError("service.ErrLedger", ErrLedger)
	wire.RegisterError("service.ErrCertificate", ErrCertificate)
	wire.RegisterError("service.ErrOptions", ErrOptions)
	wire.RegisterError("service.ErrMismatch", ErrMismatch)
	wire.RegisterError("service.ErrNoHost", ErrNoHost)
	wire.RegisterError("service.ErrSilent", ErrSilent)
	wire.RegisterError("service.ErrExpired", ErrExpired)
}

// A HostError says which data host failed, and what to do.
type HostError struct {
	Host   string // its address
	Advice string // what to do; may be empty
	Err    error
}

// Error returns one line.
func (e *HostError) Error() string {
	s := fmt.Sprintf("data host %s: %v", e.Host, e.Err)
	if e.Advice != "" {
		s += "; " + e.Advice
	}
	return s
}

// Unwrap returns Err.
func (e *HostError) Unwrap() error { return e.Err }

// hostError adds the address to an error, and what to do.
func hostError(host string, err error) *HostError {
	if e := new(HostError); errors.As(err, &e) {
		return e
	}
	e := &HostError{Host: host, Err: err}
	switch {
	case errors.Is(err, ipc.ErrKey):
		e.Advice = "give all data hosts and trainers the same key"
	case errors.Is(err, ErrExpired):
		e.Advice = "leave out what was done with it; look why this trainer was silent; a larger HostOptions.Patience waits longer"
	case errors.Is(err, ErrLedger):
		e.Advice = "look at its HostOptions.Ledger and the disk; with another ledger, dial again and begin the epoch anew"
	case errors.Is(err, tcp.ErrFingerprint):
		e.Advice = "give Options.Fingerprint what Host.Fingerprint returns there, unless somebody else answers at this address"
	case errors.Is(err, ErrCertificate):
		e.Advice = "compare TLS of both sides: RootCAs and ServerName check the data host, ClientCAs and Certificates the trainer"
	case errors.Is(err, ipc.ErrPeer), errors.Is(err, ipc.ErrType):
		e.Advice = "run the same version of Shoal there, check that the address is one of service.Listen, " +
			"and set Unencrypted on both sides or on none"
	case errors.Is(err, ErrMismatch):
		e.Advice = "start it with the same data set and options as the others"
	case errors.Is(err, ErrSilent):
		e.Advice = "look whether it is stopped, overloaded or cut off; a larger Options.Patience waits longer"
	}
	return e
}

// fatal reports whether it makes no sense to try again.
func fatal(err error) bool {
	return errors.Is(err, ipc.ErrKey) || errors.Is(err, ipc.ErrPeer) || errors.Is(err, ipc.ErrType) ||
		errors.Is(err, ErrMismatch) || errors.Is(err, ErrCertificate) || errors.Is(err, ErrLedger)
}
