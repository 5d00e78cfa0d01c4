package nats

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/sentinel"
	"github.com/shoal-mp/shoal/ipc"
)

// Sentinel errors. Returned errors wrap these, or the errors of package ipc with the same names.
var (
	// ErrClosed is returned if this process closed the queue or the connection, by puts after
	// [Queue.Finish], and by gets once a finished queue is empty.
	ErrClosed = ipc.ErrClosed
	// ErrFull is returned by a put if the queue has no room, immediately or until the deadline.
	ErrFull = ipc.ErrFull
	// ErrEmpty is returned by a get if the queue has no value, immediately or until the deadline.
	ErrEmpty = ipc.ErrEmpty
	// ErrType is returned if a queue or a store exists with another element type.
	ErrType = ipc.ErrType
	// ErrShared is returned for a value that cannot be copied: a queue, a lock or a file.
	ErrShared = ipc.ErrShared

	// ErrUnreachable is returned if no broker answers.
	ErrUnreachable = errors.New("nats: no broker answers")
	// ErrCredentials is returned if the broker rejects the credentials, or if this process rejects
	// the broker's certificate.
	ErrCredentials = errors.New("nats: credentials rejected")
	// ErrBroker is returned if the server does not support queues: it lacks JetStream, is too old,
	// or its max_payload is too small.
	ErrBroker = errors.New("nats: this server does not support queues")
	// ErrStorage is returned if the broker's disk or the account's quota is full.
	ErrStorage = errors.New("nats: the broker's storage is full")
	// ErrTooLarge is returned for a value that exceeds the size limit of the queue.
	ErrTooLarge = errors.New("nats: value exceeds the size limit of the queue")
	// ErrOptions is returned for invalid options, and for options that conflict with an existing
	// queue or store.
	ErrOptions = errors.New("nats: invalid or conflicting options")
	// ErrUncertain is wrapped if a write got no answer in time, so it may have taken effect.
	ErrUncertain = errors.New("nats: unknown whether the write took effect")
	// ErrExpired is returned by [Delivery.Ack] if no heartbeat reached the broker for too long, so
	// it may have redelivered the value to another consumer.
	ErrExpired = errors.New("nats: delivery expired")
	// ErrVersion is returned by [Store.CompareAndSwap] if the key has another version.
	ErrVersion = errors.New("nats: version mismatch")
	// ErrExist is returned by [Store.Create] if the key exists. It wraps [fs.ErrExist].
	ErrExist = sentinel.New("nats: key already exists", fs.ErrExist)
	// ErrNotExist is returned if the key does not exist. It wraps [fs.ErrNotExist].
	ErrNotExist = sentinel.New("nats: no such key", fs.ErrNotExist)
)

func init() {
	for name, err := range map[string]error{"Unreachable": ErrUnreachable, "Credentials": ErrCredentials,
		"Broker": ErrBroker, "Storage": ErrStorage, "TooLarge": ErrTooLarge, "Options": ErrOptions,
		"Uncertain": ErrUncertain, "Expired": ErrExpired, "Version": ErrVersion, "Exist": ErrExist,
		"NotExist": ErrNotExist} {
		codec.RegisterError("nats.Err"+name, err)
	}
}

// A HostError is an error of a broker with a suggested remedy. Err usually wraps one of the
// sentinel errors.
type HostError struct {
	Op     string // operation, such as connect
	Host   string // the broker's host and port
	Err    error
	Advice string // remedy, or empty
}

// Error returns the operation, the host, the cause and the advice in one line.
func (e *HostError) Error() string {
	s := fmt.Sprintf("nats: %s: %s: %s", e.Op, e.Host, strings.TrimPrefix(e.Err.Error(), "nats: "))
	if e.Advice != "" {
		s += ": " + e.Advice
	}
	return s
}

// Unwrap returns Err.
func (e *HostError) Unwrap() error { return e.Err }

// wrapBoth returns an error that wraps kind and cause, and shows the text of both.
func wrapBoth(kind, cause error) error {
	return fmt.Errorf("%w: %w", kind, sentinel.New(strings.TrimPrefix(cause.Error(), "nats: "), cause))
}

// A fault maps a class of errors to a sentinel and a remedy.
type fault struct {
	is     func(error) bool
	means  error
	advice string
}

func isAny(targets ...error) func(error) bool {
	return func(err error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
}

// isAPIError returns a predicate for API errors of the server with one of the given codes.
func isAPIError(codes ...jetstream.ErrorCode) func(error) bool {
	return func(err error) bool {
		api, ok := errors.AsType[*jetstream.APIError](err)
		if !ok {
			return false
		}
		for _, c := range codes {
			if api.ErrorCode == c {
				return true
			}
		}
		return false
	}
}

// Error codes of the server. The client library has no names for most of them.
const (
	codeAccountResources = 10002
	codeNoPeers          = 10005
	codeInsufficient     = 10023
	codeMemory           = 10028
	codeStorage          = 10047
	codeStoreFailed      = 10077
	codeOtherVersion     = jetstream.JSErrCodeStreamWrongLastSequence
	codeReplicas         = 10074
	codeTooLarge         = 10054
	codeNoMessage        = 10043 // no message with that sequence number
	codeNotDeleted       = 10057 // message not deleted, whether it exists or not
)

const unreachableAdvice = "check that the broker runs there and that the port is open"

var faults = []fault{
	{isRefused, ErrCredentials,
		"set the user and password, token, NKey or credentials file in Options to one that this broker accepts"},
	{isAny(client.ErrNkeysNotSupported), ErrCredentials, "check the NKey file"},
	{isAny(client.ErrSecureConnRequired), ErrCredentials,
		"the broker requires TLS: write tls:// in the URL, and set Options.TLS if a private authority signed its " +
			"certificate"},
	{isAny(client.ErrSecureConnWanted), ErrCredentials,
		"the broker does not use TLS: write nats:// in the URL, or configure a certificate in the broker"},
	{isCertificate, ErrCredentials,
		"certificate mismatch: Options.TLS needs the authority that signed the broker's certificate, and a client " +
			"certificate if the broker asks for one"},
	{isAny(jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount), ErrBroker,
		"start the server with JetStream (nats-server -js, or shoal broker), and allow it for this account"},
	{isAPIError(codeStorage, codeAccountResources, codeInsufficient, codeMemory), ErrStorage,
		"free space on the broker's disk, raise its limit, or give the queue a smaller MaxBytes"},
	{isAPIError(codeNoPeers, codeReplicas), ErrBroker,
		"the cluster has too few brokers with free space: start more, or lower Replicas"},
	{isAPIError(codeTooLarge), ErrTooLarge, "raise the limit of the stream"},
	{isAny(ErrCredentials), ErrCredentials, "check the file"},
	{isAny(ErrUnreachable, client.ErrNoServers, client.ErrTimeout, client.ErrNoResponders,
		jetstream.ErrNoStreamResponse, errCut, os.ErrDeadlineExceeded, io.EOF), ErrUnreachable, unreachableAdvice},
	{func(err error) bool { _, ok := errors.AsType[*net.OpError](err); return ok }, ErrUnreachable, unreachableAdvice},
}

// isRefused reports whether the broker rejected the credentials or denied a permission. It compares
// texts too, because the client library keeps only the text of an error that occurs while it
// reconnects.
func isRefused(err error) bool {
	text := strings.ToLower(err.Error())
	for _, e := range []error{client.ErrAuthorization, client.ErrAuthExpired, client.ErrAuthRevoked,
		client.ErrAccountAuthExpired, client.ErrPermissionViolation} {
		if errors.Is(err, e) || strings.Contains(text, strings.TrimPrefix(e.Error(), "nats: ")) {
			return true
		}
	}
	return false
}

func isCertificate(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	_, alert := errors.AsType[tls.AlertError](err)
	text := err.Error()
	return alert || strings.Contains(text, "tls: ") || strings.Contains(text, "tls error") ||
		strings.Contains(text, "x509: ")
}

// hostError returns err as a [*HostError] with the remedy of the first matching fault. It
// returns err unchanged if it is nil or wraps a HostError already.
func hostError(op, host string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*HostError](err); ok {
		return err
	}
	for _, f := range faults {
		if f.is(err) {
			if !errors.Is(err, f.means) {
				err = wrapBoth(f.means, err)
			}
			return &HostError{op, host, err, f.advice}
		}
	}
	return &HostError{Op: op, Host: host, Err: err}
}
