package bench

import "time"

// A work is a measurement with two sides. Each side returns a duration, and the result is their
// sum, so a side may return a negative duration to subtract time from the other's. A nil side does
// nothing.
type work struct {
	lead, follow func(s *side, o order) (time.Duration, error)
}

var works = map[string]work{
	"ready": {},

	// lower bounds
	"line_rtt":       {leadLine, followLine},
	"bare_ring":      {leadBare, followBare},
	"futex_rtt":      {leadFutex, followFutex},
	"eventfd_parked": {leadEventfd, followEventfd},
	"cas":            {leadCAS, nil},
	"cas_pair":       alone(casPair),
	"memcpy":         {leadCopy, nil},
	"sum":            {leadSum, nil},

	// package arena
	"handle_rtt":            {leadHandle, followHandle},
	"handle_parked":         {leadHandleParked, followHandleParked},
	"handles":               {leadHandles, followHandles},
	"body_rtt":              {leadBody, followBody},
	"alloc_put_get_release": {leadAlloc, nil},

	// packages ipc and tensor
	"queue":        {leadQueue, followQueue},
	"queue_batch":  {leadBatches, followBatches},
	"tensor_rtt":   {leadTensor, followTensor},
	"tensors":      {leadTensors, followTensors},
	"tensor_life":  {tensorLife, nil},
	"tensor_touch": {leadTensor, followSum},
	"fresh_tensor": {leadFresh, followFresh},

	// synchronization
	"mutex":            alone(locking),
	"mutex_contended":  together(locking),
	"value_add":        alone(adding),
	"value_add_2":      together(adding),
	"event_rtt":        byEvent.spinning(),
	"event_parked":     byEvent.parked(),
	"semaphore_rtt":    bySemaphore.spinning(),
	"semaphore_parked": bySemaphore.parked(),
	"barrier_cycles":   byBarrier.spinning(),
	"barrier_parked":   byBarrier.parked(),

	// package dist
	"all_reduce": collective(allReduce),
	"broadcast":  collective(broadcast),
	"all_gather": collective(allGather),
}
