package ipc

import "github.com/shoal-mp/shoal/internal/shm"

// A Number is what a Value and an Array are made of.
type Number = shm.Number
