package service

// SetVersion has a host say that it has another version of the protocol, until the result is
// called.
func SetVersion(h *Host, v int) func() {
	old := h.hello
	var said hello
	if err := said.decode(old); err != nil {
		panic(err)
	}
	said.Version = v
	b, err := said.encode()
	if err != nil {
		panic(err)
	}
	h.hello = b
	return func() { h.hello = old }
}
