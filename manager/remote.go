package manager

import "github.com/shoal-mp/shoal/shm"

func remoteOf(h shm.Handle) *client { return nil }
