//go:build !shoalcrash

package arena

import "sync"

func interleave(*Word, bool)     {}
func blockUntil(func() bool)     {}
func controlled() bool           { return false }
func spawn(f func())             { go f() }
func ended(<-chan struct{}) bool { return false }
func controlledLane() int        { return 0 }

// A localMutex is a mutex of this process under which shared words are looked at.
type localMutex = sync.Mutex
