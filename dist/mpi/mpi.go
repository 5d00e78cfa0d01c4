package mpi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shoal-mp/shoal/internal/collective"
	"github.com/shoal-mp/shoal/internal/dl"
	"github.com/shoal-mp/shoal/internal/mpi"
)

func init() { collective.Register(collective.MPI, open) }

// A world is the job of a library.
type world struct {
	*mpi.Comm
	lib *mpi.Library
}

func (w world) Library() string { return w.lib.Version() }
func (w world) Close() error    { return w.lib.Finalize() }

// flavors returns the families of libraries that join the jobs of a launcher, the best first.
func flavors(by string) []mpi.Flavor {
	switch {
	case strings.Contains(by, "Open MPI"):
		return []mpi.Flavor{mpi.OpenMPI, mpi.ABI}
	case strings.Contains(by, "MPICH"):
		return []mpi.Flavor{mpi.MPICH, mpi.ABI}
	}
	return []mpi.Flavor{mpi.OpenMPI, mpi.MPICH, mpi.ABI}
}

// packages are what installs the library of a launcher.
func packages(by string) string {
	debian, fedora := "libopenmpi3 openmpi-bin", "openmpi"
	if strings.Contains(by, "MPICH") {
		debian, fedora = "libmpich12 mpich", "mpich"
	}
	return fmt.Sprintf("install it, with Debian or Ubuntu by: apt-get install %s; with Fedora or RHEL by: dnf install %s",
		debian, fedora)
}

// open loads the library and joins the job.
func open(ctx context.Context, l collective.Launch) (collective.World, error) {
	lib, err := mpi.Load(flavors(l.By)...)
	if err != nil {
		if errors.Is(err, dl.ErrNotLoaded) {
			err = fmt.Errorf("%w: %w; %s", collective.ErrMissing, err, packages(l.By))
		}
		return nil, err
	}
	joined := make(chan error, 1)
	go func() { joined <- lib.Init() }()
	select {
	case err = <-joined:
	case <-ctx.Done():
		err = fmt.Errorf("%s waits for other ranks: %w", lib.Version(), context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	w := world{lib.World(), lib}
	if w.Size() != l.Size || w.Rank() != l.Rank {
		return nil, fmt.Errorf("%w: %s says rank %d of %d: it does not belong to the launcher, which is %s; "+
			"take the launcher of that library, or %s; %s names another library",
			collective.ErrMissing, lib.Version(), w.Rank(), w.Size(), l.By, packages(l.By), mpi.LibraryKey)
	}
	return w, nil
}
