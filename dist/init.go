package dist

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/dist/internal/collective"
	"github.com/shoal-mp/shoal/internal/launch"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// Init joins the group of all processes of a job and returns it: torch's init_process_group. The
// job must be started by shoal run, mpirun, srun, torchrun or a Kubernetes Indexed Job. Init reads
// the rank and the size from their environment variables. A process without such variables is the
// only rank. Rank 0 logs the launcher and the engine with package slog.
//
//	func main() { shoal.Main(run) }
//
//	func run(ctx context.Context) error {
//		group, err := dist.Init(ctx)
//		if err != nil {
//			return err
//		}
//		defer group.Close()
//		…
//	}
//
// If all ranks are on one machine, they share memory, as in a group of [NewGroup]. The process must
// then call Init before it uses shared memory in any other way. Ranks of several machines need the
// MPI library of mpirun or srun, and the program must import package dist/mpi. Values and tensors
// are then copied, and a process that is killed ends the whole job, because the launcher ends it.
// With SHOAL_DIST_ENGINE=mpi the ranks of one machine use the library as well. Ranks of several
// hosts use shared memory within each host for large collectives; see docs/cluster.md.
//
// The caller must close the group. With a library, Close blocks until the other ranks close theirs.
//
// Init blocks until all ranks have called it or ctx ends. It returns an error that wraps
// [ErrEngine] if the ranks cannot reach each other; its text says what to install or import.
func Init(ctx context.Context) (*Group, error) {
	l, err := launch.Find(os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("dist: init: %w: %w", ErrEngine, err)
	}
	g, by, err := initBy(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("dist: init rank %d of %d, started by %s: %w", l.Rank, l.Size, l.By, err)
	}
	if l.Rank == 0 {
		slog.Info("dist.Init", "ranks", l.Size, "started by", l.By, "engine", by)
	}
	return g, nil
}

// ErrEngine is wrapped by errors of [Init] if the ranks cannot reach each other: the program links
// no engine, the engine's library is missing, or the library does not match the launcher.
var ErrEngine = errors.New("dist: no transport between ranks")

func initBy(ctx context.Context, l launch.Launch) (*Group, string, error) {
	if l.Size == 1 {
		g, err := NewGroup(1)
		if err == nil {
			err = g.Join(0)
		}
		return g, "none (one rank)", err
	}
	if open := collective.Of(collective.MPI); open != nil && l.MPI {
		world, err := open(ctx, collective.Launch{By: l.By, Rank: l.Rank, Size: l.Size})
		if err != nil {
			if errors.Is(err, collective.ErrMissing) {
				err = fmt.Errorf("%w: %w", ErrEngine, err)
			}
			return nil, "", err
		}
		return initWorld(ctx, l, world)
	}
	if l.LocalSize == l.Size {
		g, err := initNear(ctx, l)
		return g, "shared memory", err
	}
	var how []string
	if collective.Of(collective.MPI) == nil {
		how = append(how, fmt.Sprintf("import _ %q in the program", "github.com/shoal-mp/shoal/dist/mpi"))
	}
	if !l.MPI {
		how = append(how, "start it with mpirun, shoal run --mpi, or srun --mpi=pmix with Open MPI or --mpi=pmi2 "+
			"with MPICH")
	}
	return nil, "",
		fmt.Errorf("%w: only %d of %d ranks are on this machine, and the others cannot use its shared memory: %s",
			ErrEngine, l.LocalSize, l.Size, strings.Join(how, ", and "))
}

// engineKey is the environment variable that forces the library's engine on one machine if its
// value is [collective.MPI].
const engineKey = "SHOAL_DIST_ENGINE"

// initWorld returns the group of a job that the library has joined, and a description of its
// engine for the log. If all ranks are on this machine, they use shared memory, because it is
// faster. Rank 0 then broadcasts the name of the meeting socket over the library. The group
// closes the library; after an error initWorld has closed it.
func initWorld(ctx context.Context, l launch.Launch, world collective.World) (*Group, string, error) {
	far := newFarGroup(newFar(world, &job{world: world}))
	far.connectAll()
	if l.LocalSize < l.Size || os.Getenv(engineKey) == collective.MPI {
		how, err := far.setUpHosts(ctx)
		if err != nil {
			return nil, "", errors.Join(err, far.Close())
		}
		return far, world.Library() + how, nil
	}
	name := tensor.New(tensor.Uint8, 16)
	if l.Rank == 0 {
		copy(tensor.Bytes(name), rand.Text())
	}
	g, err := far, far.Broadcast(ctx, 0, name)
	if err == nil {
		l.Job = string(tensor.Bytes(name))
		g, err = initNear(ctx, l)
	}
	if err != nil {
		return nil, "", errors.Join(err, far.Close())
	}
	g.library = far
	return g, "shared memory, beside " + world.Library(), nil
}

// pause is the interval at which a rank retries to connect to rank 0.
const pause = 2 * time.Millisecond

// initNear creates the group of the ranks of one machine and joins it. Rank 0 listens on an
// abstract Unix socket and sends the group to each of the others. initNear returns when all
// ranks have joined, or with an error if ctx ends first. The caller must close the group.
func initNear(ctx context.Context, l launch.Launch) (*Group, error) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", os.Getuid(), l.Job))
	addr, key := fmt.Sprintf("@shoal-dist-%x", sum[:12]), sum[12:]
	if l.Rank == 0 {
		return leadInit(ctx, l, addr, key)
	}
	for {
		c, err := ipc.Dial[*Group](ctx, addr, key)
		if err == nil {
			return followInit(ctx, l, c)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.ENOENT) {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("rank 0 has not called Init: %w", cmp.Or(context.Cause(ctx), err))
		}
	}
}

func leadInit(ctx context.Context, l launch.Launch, addr string, key []byte) (_ *Group, err error) {
	g, err := NewGroup(l.Size)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			g.Close()
		}
	}()
	if err := g.Join(0); err != nil {
		return nil, err
	}
	at, err := ipc.Listen[*Group](addr, key)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	var met []*ipc.Conn[*Group]
	defer func() {
		for _, c := range met {
			c.Close()
		}
	}()
	for len(met) < l.Size-1 {
		c, err := at.Accept(ctx)
		if err != nil {
			return nil, fmt.Errorf("only %d of %d ranks have called Init: %w", len(met)+1, l.Size, err)
		}
		met = append(met, c)
		if err := c.Send(ctx, g); err != nil {
			return nil, err
		}
	}
	return g, g.Barrier(ctx) // before the connections that carry the messages are closed
}

func followInit(ctx context.Context, l launch.Launch, c *ipc.Conn[*Group]) (*Group, error) {
	defer c.Close()
	if !c.Shared() {
		return nil, fmt.Errorf("%w: this process already has shared memory of its own: call Init before "+
			"creating tensors in shared memory, queues or workers", ErrEngine)
	}
	g, err := c.Recv(ctx)
	if err != nil {
		return nil, err
	}
	if err = g.Join(l.Rank); err == nil {
		err = g.Barrier(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}
