//go:build !linux

package sys

import "time"

// An Orphanage ends this process when one of its ancestors has died.
type Orphanage struct{}

// NewOrphanage needs Linux.
func NewOrphanage(lifelines []int, wake int, grace time.Duration, code int) (*Orphanage, error) {
	return nil, unsupported("ppoll")
}

// Watch needs Linux.
func (o *Orphanage) Watch() {}
