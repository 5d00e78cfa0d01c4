package mpi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shoal-mp/shoal/dist/internal/collective"
	"github.com/shoal-mp/shoal/dist/internal/mpi"
	"github.com/shoal-mp/shoal/internal/dl"
)

func init() { collective.Register(collective.MPI, openWorld) }

// A world implements [collective.World].
type world struct {
	*mpi.Comm
	lib *mpi.Library
}

func (w world) Library() string { return w.lib.Version() }
func (w world) Close() error    { return w.lib.Finalize() }

// makerOf returns the implementation that provides the launcher by, a [collective.Launch] name:
// OpenMPI, MPICH, or AnyFlavor for launchers such as srun.
func makerOf(by string) mpi.Flavor {
	switch {
	case strings.Contains(by, mpi.OpenMPI.String()):
		return mpi.OpenMPI
	case strings.Contains(by, mpi.MPICH.String()):
		return mpi.MPICH
	}
	return mpi.AnyFlavor
}

// flavorsFor returns the flavors that can join the jobs of a launcher, in order of preference.
func flavorsFor(by string) []mpi.Flavor {
	if maker := makerOf(by); maker != mpi.AnyFlavor {
		return []mpi.Flavor{maker, mpi.ABI}
	}
	if speaksPMI(by) {
		return []mpi.Flavor{mpi.MPICH, mpi.ABI, mpi.OpenMPI}
	}
	return []mpi.Flavor{mpi.OpenMPI, mpi.MPICH, mpi.ABI}
}

// speaksPMI reports whether a launcher uses PMI, MPICH's protocol. Open MPI uses PMIx; only some of
// its builds also support PMI, and others abort the process.
func speaksPMI(by string) bool {
	return strings.Contains(by, "--mpi=pmi2") || strings.HasSuffix(by, " PMI")
}

// installHint returns a hint for installing the library that matches the launcher by, to be
// appended to an error.
func installHint(by string) string {
	debian, fedora := "libopenmpi3 openmpi-bin", "openmpi"
	if makerOf(by) == mpi.MPICH || speaksPMI(by) {
		debian, fedora = "libmpich12 mpich", "mpich"
	}
	return fmt.Sprintf("install it on Debian or Ubuntu with: apt-get install %s; on Fedora or RHEL with: dnf "+
		"install %s",
		debian, fedora)
}

// openWorld loads the library and joins the job. It returns an error that wraps
// [collective.ErrMissing] if no library can be loaded or the library does not match the
// launcher. If ctx ends first, it returns an error that wraps the cause of ctx, and MPI_Init
// keeps running. The caller must close the world.
func openWorld(ctx context.Context, l collective.Launch) (collective.World, error) {
	lib, err := mpi.Load(flavorsFor(l.By)...)
	if err != nil {
		if errors.Is(err, dl.ErrNotLoaded) {
			err = fmt.Errorf("%w: %w; %s", collective.ErrMissing, err, installHint(l.By))
		}
		return nil, err
	}
	if of, by := lib.Maker(), makerOf(l.By); of != by && of != mpi.AnyFlavor && by != mpi.AnyFlavor {
		return nil, mismatchError(lib, l, "is loaded") // MPICH 5 would abort the process
	}
	joined := make(chan error, 1)
	go func() { joined <- lib.Init() }()
	select {
	case err = <-joined:
	case <-ctx.Done():
		err = fmt.Errorf("wait for other ranks in MPI_Init of %s: %w", lib.Version(), context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	w := world{lib.World(), lib}
	if w.Size() != l.Size || w.Rank() != l.Rank {
		return nil, mismatchError(lib, l, fmt.Sprintf("reports rank %d of %d", w.Rank(), w.Size()))
	}
	return w, nil
}

// mismatchError returns an error that wraps [collective.ErrMissing] for a library that does not
// match the launcher, with the remedy. does is a verb phrase that says how the mismatch was
// found, such as "is loaded".
func mismatchError(lib *mpi.Library, l collective.Launch, does string) error {
	take := "the launcher of that library"
	switch {
	case strings.Contains(l.By, "srun") && lib.Maker() == mpi.MPICH:
		take = "srun --mpi=pmi2"
	case strings.Contains(l.By, "srun"):
		take = "srun --mpi=pmix"
	}
	return fmt.Errorf("%w: %s %s, but does not match the launcher, which is %s: "+
		"use %s, or %s, or set %s to the path of another library",
		collective.ErrMissing, lib.Version(), does, l.By, take, installHint(l.By), mpi.LibraryKey)
}
