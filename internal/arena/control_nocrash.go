//go:build !shoalcrash

package arena

import "sync"

// Only crash builds have controlled schedules; see Note [Controlled schedules].
func interleave(*Word, bool)            {}
func blockUntil(func() bool)            {}
func isControlled() bool                { return false }
func spawn(f func())                    { go f() }
func isClosedChan(<-chan struct{}) bool { return false }
func controlledLane() int               { return 0 }

// A localMutex is a mutex within this process. Its holder accesses shared words.
type localMutex = sync.Mutex
