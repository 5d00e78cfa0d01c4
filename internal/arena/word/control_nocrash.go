//go:build !shoalcrash

package word

import "sync"

// Only crash builds have controlled schedules; see Note [Controlled schedules]. The functions of
// other builds behave as if no test had taken control.
func interleave(*Word, bool)            {}
func BlockUntil(func() bool)            {}
func IsControlled() bool                { return false }
func Spawn(f func())                    { go f() }
func IsClosedChan(<-chan struct{}) bool { return false }
func ControlledLane() int               { return 0 }

// A LocalMutex is a mutex within this process. Its holder accesses shared words.
type LocalMutex = sync.Mutex
