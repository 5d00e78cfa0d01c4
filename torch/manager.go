package torch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// Note [Managers] The server of multiprocessing.managers accepts requests (object, method, args,
// kwargs) and answers each with (kind, value). Administrative requests, such as create, incref and
// decref, name no object and are made on a connection of their own. After the request
// accept_connection, a connection is bound to a thread of the server until it is closed. The thread
// executes the requests of its connection in order, for any objects. The owner of a Python lock is
// such a thread. An object lives as long as its reference count is positive. See
// https://github.com/python/cpython/blob/v3.13.0/Lib/multiprocessing/managers.py.

// A Manager is a client of the server of a Python BaseManager or SyncManager. [DialManager]
// makes it. Its methods may be called from several goroutines.
type Manager struct {
	network, addr string
	opts          Options
	alone         bool // it belongs to one proxy and is closed with it

	mu      sync.Mutex
	idle    []*Conn         // unused connections that are bound to a server thread
	proxies map[*Proxy]bool // open proxies
	closed  bool
}

// idleThreads is the number of unused connections that are kept.
const idleThreads = 4

// DialManager connects to the server of a running manager, at an address in the form of [Dial].
// [Options.AuthKey] must be the authkey of the manager. If tensors are sent, it must also be the
// current_process().authkey of the server, which is the default of a manager created without a key.
// The caller must close the Manager.
func DialManager(ctx context.Context, network, addr string, opts Options) (*Manager, error) {
	m := newManager(network, addr, opts)
	if _, err := m.callOnce(ctx, "dummy"); err != nil {
		return nil, err
	}
	return m, nil
}

func newManager(network, addr string, opts Options) *Manager {
	return &Manager{network: network, addr: addr, opts: opts, proxies: map[*Proxy]bool{}}
}

// Keywords holds keyword arguments. It may be the last argument of [Manager.Create] and
// [Proxy.Call].
type Keywords map[string]any

// Create calls the callable that is registered under name in the server, and returns a proxy of its
// result. The last argument may be [Keywords]. If the call raises an exception, the error is a
// *[RemoteError]. The caller must close the Proxy.
func (m *Manager) Create(ctx context.Context, name string, args ...any) (*Proxy, error) {
	v, err := m.callOnce(ctx, "create", append([]any{name}, args...)...)
	if err != nil {
		return nil, err
	}
	var made struct {
		_       struct{} `torch:",tuple"`
		ID      string
		Exposed []string
	}
	if err := assign(&made, v); err != nil {
		return nil, protocolError("malformed reply of a manager to create: %v", v)
	}
	return m.adoptReference(name, made.ID, made.Exposed), nil // the server has counted this reference
}

// Shutdown ends the server and destroys its objects. The caller must still close the Manager.
func (m *Manager) Shutdown(ctx context.Context) error {
	_, err := m.callOnce(ctx, "shutdown")
	return err
}

// Close closes the open proxies of the manager, and its connections. The server continues to run.
// Close is idempotent.
func (m *Manager) Close() (err error) {
	m.mu.Lock()
	proxies := m.proxies
	m.proxies = map[*Proxy]bool{}
	m.mu.Unlock()
	for p := range proxies {
		err = errors.Join(err, p.Close())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, c := range m.idle {
		c.Close()
	}
	m.idle = nil
	return err
}

// callOnce makes one administrative request on a new connection, and returns the value of the
// answer. If the server raises an exception, the error is a *[RemoteError].
func (m *Manager) callOnce(ctx context.Context, method string, args ...any) (any, error) {
	c, err := Dial(ctx, m.network, m.addr, m.opts)
	if err != nil {
		return nil, fmt.Errorf("call manager: %w", err)
	}
	defer c.Close()
	return m.request(ctx, c, nil, method, args)
}

// threadConn returns a connection that is bound to a thread of the server, for the exclusive use
// of the caller. The caller must pass it to putConn or close it.
func (m *Manager) threadConn(ctx context.Context) (*Conn, error) {
	m.mu.Lock()
	if n := len(m.idle); n > 0 {
		c := m.idle[n-1]
		m.idle = m.idle[:n-1]
		m.mu.Unlock()
		return c, nil
	}
	m.mu.Unlock()
	c, err := Dial(ctx, m.network, m.addr, m.opts)
	if err != nil {
		return nil, fmt.Errorf("call manager: %w", err)
	}
	if _, err := m.request(ctx, c, nil, "accept_connection", []any{"go"}); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// putConn takes back a connection of threadConn after use. It keeps the connection for later
// calls, or closes it.
func (m *Manager) putConn(c *Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(m.idle) >= idleThreads || c.broken.Load() {
		c.Close()
		return
	}
	m.idle = append(m.idle, c)
}

// request sends a request and waits for its answer. object is the ID of the object, or nil for
// an administrative request. If the server raises an exception, the error is a *[RemoteError].
// On any other error request closes c, because the answer could arrive later.
func (m *Manager) request(ctx context.Context, c *Conn, object any, method string, args []any) (v any, err error) {
	kwargs := Keywords{}
	if n := len(args); n > 0 {
		if last, ok := args[n-1].(Keywords); ok {
			args, kwargs = args[:n-1], last
		}
	}
	if err := c.Send(ctx, python.Tuple{object, method, python.Tuple(args), kwargs}); err != nil {
		return nil, fmt.Errorf("call %s: %w", method, err)
	}
	b, err := c.RecvBytes(ctx)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("call %s: %w", method, truncatedError(err))
	}
	i := c.importer()
	i.manager = m
	got, err := i.startUnpacking(ctx, b, nil).awaitValue(ctx)
	if err != nil {
		if remote := remoteException(b, c.opts); remote != nil {
			err = remote
		}
		return nil, fmt.Errorf("call %s: %w", method, err)
	}
	if v, err = m.decodeAnswer(got); err != nil {
		CloseAll(got)
		return nil, fmt.Errorf("call %s: %w", method, err)
	}
	return v, nil
}

// decodeAnswer decodes an answer (kind, value). It returns the value, or a *[Proxy] for an
// answer that refers to an object. The error is a *[RemoteError] for an exception, and otherwise
// wraps [ErrProtocol].
func (m *Manager) decodeAnswer(got any) (any, error) {
	pair, _ := got.(python.Tuple)
	if len(pair) != 2 {
		return nil, protocolError("reply of a manager is %T, want a pair", got)
	}
	switch kind, _ := pair[0].(string); kind {
	case "#RETURN":
		return pair[1], nil
	case "#PROXY":
		made, _ := pair[1].(python.Tuple)
		var exposed []string
		if len(made) != 2 || assign(&exposed, made[0]) != nil {
			return nil, protocolError("malformed proxy in the reply of a manager: %v", pair[1])
		}
		t, ok := made[1].(token)
		if !ok {
			return nil, protocolError("proxy in the reply of a manager holds %T, want a Token", made[1])
		}
		return m.adoptReference(t.name, t.id, exposed), nil
	case "#TRACEBACK", "#UNSERIALIZABLE":
		text, _ := pair[1].(string)
		return nil, &RemoteError{Traceback: text}
	default:
		return nil, protocolError("reply of a manager has unknown kind %v", pair[0])
	}
}

// A RemoteError is an exception that a call raised in a manager's server.
type RemoteError struct {
	Class     string       // with its module, such as "builtins.KeyError"; "" if unknown
	Args      python.Tuple // of the exception; an object is represented by its class name
	Traceback string       // "" if the exception itself was sent
}

// Error returns the class and the arguments of the exception as Python prints them. If the
// exception was sent as text, they are read from the traceback.
func (e *RemoteError) Error() string {
	class, text := e.Class, ""
	if e.Class == "" {
		class, text = lastException(e.Traceback)
		if class == "" {
			text = strings.TrimSpace(e.Traceback)
		}
	} else if len(e.Args) == 1 {
		text = fmt.Sprint(e.Args[0])
	} else if len(e.Args) > 1 {
		text = fmt.Sprint([]any(e.Args))
	}
	return "torch: manager: " + strings.TrimPrefix(class, "builtins.") + ": " + text
}

// remoteException decodes the exception in b, an answer ("#ERROR", exception). The class of the
// exception may be unknown, because it is treated as data. It returns nil for any other answer.
func remoteException(b []byte, opts Options) *RemoteError {
	tree, err := pickle.Unmarshal(b, inertNames, opts.limits())
	pair, _ := tree.(python.Tuple)
	if err != nil || len(pair) != 2 || pair[0] != "#ERROR" {
		return nil
	}
	o, ok := pair[1].(*pickle.Object)
	if !ok {
		return nil
	}
	e := &RemoteError{Class: o.Class.String()}
	for _, a := range o.Args {
		switch v := a.(type) {
		case *pickle.Object:
			a = v.Class.String()
		case nil, bool, int64, float64, string, []byte:
		default:
			a = fmt.Sprintf("%T", a)
		}
		e.Args = append(e.Args, a)
	}
	return e
}
