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

	"github.com/shoal-mp/shoal/internal/wire"
	"github.com/shoal-mp/shoal/ipc"
)

// Sentinels of this package. The errors that it returns wrap them, or those of package ipc under
// the same name.
var (
	// ErrClosed is returned by a queue or a connection that this process has closed, by puts after
	// Finish, and by gets once a finished queue is empty.
	ErrClosed = ipc.ErrClosed
	// ErrFull is returned by a put for which the queue has no room, at once or until its deadline.
	ErrFull = ipc.ErrFull
	// ErrEmpty is returned by a get for which there is no value, at once or until its deadline.
	ErrEmpty = ipc.ErrEmpty
	// ErrType is returned where a queue or a store keeps values of another type.
	ErrType = ipc.ErrType
	// ErrShared is returned for a value that cannot be copied: a queue, a lock or a file.
	ErrShared = ipc.ErrShared

	// ErrUnreachable is returned where no broker answers.
	ErrUnreachable = errors.New("nats: no broker answers")
	// ErrCredentials is returned where the broker refuses the credentials, or this program the
	// broker's certificate.
	ErrCredentials = errors.New("nats: credentials are refused")
	// ErrBroker is returned where a server cannot keep queues: it has no JetStream, or is too old,
	// or its messages are too small.
	ErrBroker = errors.New("nats: this server cannot keep queues")
	// ErrStorage is returned where the broker has no room on its disk, or for this account.
	ErrStorage = errors.New("nats: the broker has no room")
	// ErrTooLarge is returned for a value for which a queue never has room.
	ErrTooLarge = errors.New("nats: larger than the queue")
	// ErrOptions is returned for options that there cannot be, and for those of a queue or a store
	// that exists with others.
	ErrOptions = errors.New("nats: options do not fit")
	// ErrUncertain is wrapped where a write got no answer in time: it may have been done.
	ErrUncertain = errors.New("nats: not known whether it was stored")
	// ErrExpired is returned by the Ack of a Delivery that was held for too long without a sign of
	// life: the broker may have given the value to another consumer.
	ErrExpired = errors.New("nats: the delivery has expired")
	// ErrVersion is returned by a CompareAndSwap of a key that has another version.
	ErrVersion = errors.New("nats: another version")
	// ErrExist is returned by a Create of a key that exists. It wraps fs.ErrExist.
	ErrExist = fmt.Errorf("nats: the key exists%.0w", fs.ErrExist)
	// ErrNotExist is returned for a key that does not exist. It wraps fs.ErrNotExist.
	ErrNotExist = fmt.Errorf("nats: no such key%.0w", fs.ErrNotExist)
)

func init() {
	for name, err := range map[string]error{"Unreachable": ErrUnreachable, "Credentials": ErrCredentials,
		"Broker": ErrBroker, "Storage": ErrStorage, "TooLarge": ErrTooLarge, "Options": ErrOptions,
		"Uncertain": ErrUncertain, "Expired": ErrExpired, "Version": ErrVersion, "Exist": ErrExist,
		"NotExist": ErrNotExist} {
		wire.RegisterError("nats.Err"+name, err)
	}
}

// A HostError is an error of a broker, with what to do about it. Err wraps one of the sentinels.
type HostError struct {
	Op     string // such as connect
	Host   string // of the broker, with its port
	Err    error
	Advice string // what to do
}

// Error returns one line.
func (e *HostError) Error() string {
	s := fmt.Sprintf("nats: %s: %s: %s", e.Op, e.Host, strings.TrimPrefix(e.Err.Error(), "nats: "))
	if e.Advice != "" {
		s += ": " + e.Advice
	}
	return s
}

// Unwrap returns Err.
func (e *HostError) Unwrap() error { return e.Err }

// both is an error that is a sentinel and has a cause, whose text it shows.
func both(sentinel, cause error) error {
	return fmt.Errorf("%w: %s%.0w", sentinel, strings.TrimPrefix(cause.Error(), "nats: "), cause)
}

// A fault is what a kind of error means and what to do about it.
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

// has reports whether an error is one of the server's with one of these numbers.
func has(codes ...jetstream.ErrorCode) func(error) bool {
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

// Numbers of the server's errors, of which the client library has no names.
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
	codeNoMessage        = 10043 // there is none of that number
	codeNotDeleted       = 10057 // a message, which was there or not
)

const unreachableAdvice = "see that the broker runs there and that the port is open"

var faults = []fault{
	{isRefused, ErrCredentials,
		"give Options the user and password, the token, the NKey or the credentials file that this broker knows"},
	{isAny(client.ErrNkeysNotSupported), ErrCredentials, "check the file of the key"},
	{isAny(client.ErrSecureConnRequired), ErrCredentials,
		"the broker wants TLS: write tls:// in the URL, and Options.TLS if its certificate is of your own authority"},
	{isAny(client.ErrSecureConnWanted), ErrCredentials,
		"the broker has no TLS: write nats:// in the URL, or give the broker a certificate"},
	{isCertificate, ErrCredentials,
		"the certificates do not fit: Options.TLS needs the authority that signed the broker's, and a certificate if the broker asks for one"},
	{isAny(jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount), ErrBroker,
		"start the server with JetStream (nats-server -js, or shoal broker), and allow it for this account"},
	{has(codeStorage, codeAccountResources, codeInsufficient, codeMemory), ErrStorage,
		"make room on the broker's disk, raise its limit, or give the queue a smaller MaxBytes"},
	{has(codeNoPeers, codeReplicas), ErrBroker, "the cluster has too few brokers with room: start more, or ask for fewer Replicas"},
	{has(codeTooLarge), ErrTooLarge, "raise the limit of the stream"},
	{isAny(ErrCredentials), ErrCredentials, "check the file"},
	{isAny(ErrUnreachable, client.ErrNoServers, client.ErrTimeout, client.ErrNoResponders,
		jetstream.ErrNoStreamResponse, errCut, os.ErrDeadlineExceeded, io.EOF), ErrUnreachable, unreachableAdvice},
	{func(err error) bool { _, ok := errors.AsType[*net.OpError](err); return ok }, ErrUnreachable, unreachableAdvice},
}

// isRefused reports whether the broker refuses the credentials, or what they may do. When it
// refuses them as a client connects again, the client library has the text of that alone.
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
	return alert || strings.Contains(text, "tls: ") || strings.Contains(text, "tls error") || strings.Contains(text, "x509: ")
}

// hostError returns err as a HostError, unless it is one already.
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
				err = both(f.means, err)
			}
			return &HostError{op, host, err, f.advice}
		}
	}
	return &HostError{Op: op, Host: host, Err: err}
}
