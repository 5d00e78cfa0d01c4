package sim

import (
	"os"
	"strconv"
	"time"
)

// Note [Hardware queues] A device has a few queues for all streams of a context: eight, or the
// number in CUDA_DEVICE_MAX_CONNECTIONS, up to 32. A queue runs its entries in order, even if they
// belong to different streams: if a stream waits for a number, later entries of other streams in
// the same queue wait too. CUDA calls that a false dependency. Work that should end a wait must not
// be in such a queue.

// connections is the default number of queues, and mostConnections the maximum.
const (
	connections     = 8
	mostConnections = 32
	connectionsKey  = "CUDA_DEVICE_MAX_CONNECTIONS"
)

// depth is the number of entries, such as launches, that a queue holds before further calls block.
const depth = 1024

// A hardwareQueue is one of a context's queues.
type hardwareQueue struct {
	tasks chan task
	over  chan struct{} // closed when the context ends
}

// openQueues starts a context's queues, each with a goroutine of its own. [context.closeQueues]
// stops them.
func (d *Driver) openQueues(c *context) {
	n, err := strconv.Atoi(os.Getenv(connectionsKey))
	if err != nil || n < 1 {
		n = connections
	}
	over := make(chan struct{})
	for range min(n, mostConnections) {
		l := hardwareQueue{make(chan task, depth), over}
		c.queues = append(c.queues, l)
		go d.run(c, l)
	}
}

// nextQueue returns the queue for the next stream, round-robin.
func (c *context) nextQueue() hardwareQueue {
	l := c.queues[c.given%len(c.queues)]
	c.given++
	return l
}

// closeQueues stops the queues and discards unfinished work. It must be called once.
func (c *context) closeQueues() { close(c.queues[0].over) }

func (d *Driver) run(c *context, l hardwareQueue) {
	for {
		select {
		case <-l.over:
			return
		case t := <-l.tasks:
			for !d.tryTask(c, t) {
				select {
				case <-l.over:
					return
				case <-time.After(tick):
				}
			}
		}
	}
}

// enqueue appends a task to the queue, and blocks while the queue is full. It discards the task
// if the context has ended. The caller must not hold the driver's lock.
func (l hardwareQueue) enqueue(t task) {
	give := func(t task) {
		select {
		case l.tasks <- t:
		case <-l.over:
		}
	}
	for range t.entries - 1 {
		give(task{})
	}
	give(t)
}
