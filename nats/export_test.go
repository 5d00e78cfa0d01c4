package nats

import "time"

// SetAbandoned sets how old chunks are that seem abandoned, until it is undone.
func SetAbandoned(age time.Duration) (undo func()) {
	was := abandoned
	abandoned = age
	return func() { abandoned = was }
}

// Leave has the connection made again with another node.
func (c *Conn) Leave() { c.leave() }
