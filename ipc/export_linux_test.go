package ipc

// Keep is what Poll does with the connection that it has found.
func (l *Listener[T]) Keep(c *Connection[T]) error { return l.keep(c) }
