package ipc

// Keep is what Poll does with the connection that it has found.
func (l *Listener[T]) Keep(c *Conn[T]) error { return l.storeConn(c) }
