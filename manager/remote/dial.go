package remote

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/internal/link/secure"
	"github.com/shoal-mp/shoal/manager"
)

// Dial connects to the [Listener] at a TCP address, such as "host:7000", and returns a manager
// for its server. ctx limits the connecting only. The caller must close the manager. There is
// one connection per concurrent call. The connections are closed after the manager and all its
// proxies in this process are closed. The error wraps [ErrKey], [ErrPeer], [ErrCertificate] or
// [ErrFingerprint], or is an error of the network.
func Dial(ctx context.Context, addr string, opts Options) (*manager.Manager, error) {
	m, err := manager.Connect(ctx, func(ctx context.Context) (manager.Stream, error) {
		c, err := secure.Dial(ctx, addr, opts.secureOptions())
		if err != nil {
			return nil, fmt.Errorf("dial %s: %w", addr, err)
		}
		return c, nil
	})
	if err != nil {
		return nil, fmt.Errorf("remote: %w", err)
	}
	return m, nil
}
