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
	"cas_pair":       soloWork(casPair),
	"memcpy":         {leadCopy, nil},
	"sum":            {leadSum, nil},

	// package arena
	"handle_rtt":            {leadHandle, followHandle},
	"handle_parked":         {leadHandleParked, followHandleParked},
	"handles":               {leadHandles, followHandles},
	"body_rtt":              {leadBody, followBody},
	"alloc_put_get_release": {leadAlloc, nil},

	// package arena, beside other queues
	"parked_rtt":         besideWork(false),
	"parked_rtt_waiters": besideWork(true),

	// packages ipc and tensor
	"queue":        {leadQueue, followQueue},
	"queue_batch":  {leadBatches, followBatches},
	"tensor_rtt":   {leadTensor(timeRounds), followTensor},
	"tensor_tail":  {leadTensor(tailOf), followTensor},
	"eventfd_rtt":  eventfdWork(timeRounds),
	"eventfd_tail": eventfdWork(tailOf),
	"tensors":      {leadTensors, followTensors},
	"tensor_life":  {measureTensorLife, nil},
	"tensor_touch": {leadTensor(timeRounds), followSum},
	"fresh_tensor": {leadFresh, followFresh},

	// synchronization
	"mutex":            soloWork(lockRounds),
	"mutex_contended":  symmetricWork(lockRounds),
	"value_add":        soloWork(addRounds),
	"value_add_2":      symmetricWork(addRounds),
	"event_rtt":        byEvent.spinningWork(),
	"event_parked":     byEvent.parkedWork(),
	"semaphore_rtt":    bySemaphore.spinningWork(),
	"semaphore_parked": bySemaphore.parkedWork(),
	"barrier_cycles":   byBarrier.spinningWork(),
	"barrier_parked":   byBarrier.parkedWork(),

	// package dist
	"all_reduce": collectiveWork(allReduce),
	"broadcast":  collectiveWork(broadcast),
	"all_gather": collectiveWork(allGather),
}
