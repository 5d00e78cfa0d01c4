package nats

import (
	"context"
	"time"
)

// SetAbandoned sets how old chunks are that seem abandoned, until it is undone.
func SetAbandoned(age time.Duration) (undo func()) {
	was := abandoned
	abandoned = age
	return func() { abandoned = was }
}

// Leave has the connection made again with another node.
func (c *Conn) Leave() { c.switchNode() }

// Ask has f called until the broker answers.
func (c *Conn) Ask(ctx context.Context, f func() error) error {
	_, err := retryRequest(ctx, c, func(context.Context) (struct{}, error) { return struct{}{}, f() })
	return hostError("ask", c.Host(), err)
}
