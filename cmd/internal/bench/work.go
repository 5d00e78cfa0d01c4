package bench

import "time"

// A work is what an order asks for: its two sides. Each returns a time. The pair's is their sum, so
// a side that spent some for the other's sake returns it negative. A side that is nil has nothing
// to do.
type work struct {
	lead, follow func(s *side, o order) (time.Duration, error)
}

var works = map[string]work{
	"ready": {},

	// What the machine allows.
	"line_rtt":       {leadLine, followLine},
	"bare_ring":      {leadBare, followBare},
	"futex_rtt":      {leadFutex, followFutex},
	"eventfd_parked": {leadEventfd, followEventfd},
	"cas":            {leadCAS, nil},
	"cas_pair":       alone(casPair),
	"memcpy":         {leadCopy, nil},
	"sum":            {leadSum, nil},

	// What shm makes of it.
	"handle_rtt":            {leadHandle, followHandle},
	"handle_parked":         {leadHandleParked, followHandleParked},
	"handles":               {leadHandles, followHandles},
	"body_rtt":              {leadBody, followBody},
	"alloc_put_get_release": {leadAlloc, nil},

	// What ipc and tensor make of that.
	"queue":        {leadQueue, followQueue},
	"queue_batch":  {leadBatches, followBatches},
	"tensor_rtt":   {leadTensor, followTensor},
	"tensors":      {leadTensors, followTensors},
	"tensor_life":  {tensorLife, nil},
	"tensor_touch": {leadTensor, followSum},
	"fresh_tensor": {leadFresh, followFresh},

	// The same, to synchronise by.
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

	// What dist makes of that.
	"all_reduce": collective(allReduce),
	"broadcast":  collective(broadcast),
	"all_gather": collective(allGather),
}
