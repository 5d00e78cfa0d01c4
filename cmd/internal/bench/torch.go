package bench

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
)

var torchPeer = Suite{
	Name:    "torchpeer",
	Doc:     "tensors between PyTorch and Go, compared with PyTorch to PyTorch",
	peer:    "torch_peer.py",
	partner: writePartnerFiles,
	groups: []func(context.Context, *environment) (group,
		error){peerRows(kib, "1KiB", 100), peerRows(mib, "1MiB", 50), peerRows(64*mib, "64MiB", 3)},
}

var torchLight = Suite{
	Name:    "torchloader_light",
	Doc:     "a DataLoader with Go workers, 3×32×32 samples",
	peer:    "torch_peer.py",
	partner: writePartnerFiles,
	groups:  []func(context.Context, *environment) (group, error){loaderRows("light", 20_000, 3)},
}

var torchJPEG = Suite{
	Name:    "torchloader_jpeg",
	Doc:     "a DataLoader with Go workers, 224×224 JPEG images",
	peer:    "torch_peer.py",
	partner: writePartnerFiles,
	groups:  []func(context.Context, *environment) (group, error){loaderRows("jpeg", 1000, 1.5)},
}

// ourVariant selects the variant of a script with a Shoal program as the other side.
const ourVariant = "shoal"

// peerRows returns a constructor of the rows for tensors of size bytes, which the rows call
// name. The suffix _fs marks PyTorch's strategy file_system. In rows with spawn, our program has
// started PyTorch; in the others PyTorch has started our program.
func peerRows(size int, name string, rounds int) func(context.Context, *environment) (group, error) {
	return func(_ context.Context, h *environment) (group, error) {
		g := group{rounds: 5}
		for _, s := range []struct{ strategy, suffix string }{{"file_descriptor", ""}, {"file_system", "_fs"}} {
			for _, row := range []struct {
				name, ours, theirs string
				target             Target
			}{
				{"to", "to", "to", timesPeer(4)},
				{"from", "from", "from", timesPeer(1.2)},
				{"go_share", "share", "", atMost(15e3, "15 µs")},
				{"rtt", "rtt", "rtt", timesPeer(1.1)},
				{"kept", "kept", "to", timesPeer(5)},
				{"spawn_from", "spawn_from", "from", timesPeer(1.2)},
				{"spawn_go_share", "spawn_share", "", atMost(15e3, "15 µs")},
			} {
				w := &peerWork{op: row.theirs + " " + s.strategy, ours: row.ours + " " + s.strategy,
					Size: size, Rounds: max(h.scaleRounds(rounds), 1)}
				g.cases = append(g.cases, Case{Name: "torchpeer_" + name + "_" + row.name + s.suffix,
					Unit: Nanoseconds, Target: row.target, Peer: w})
			}
		}
		return g, nil
	}
}

func loaderRows(name string, samples int, times float64) func(context.Context, *environment) (group, error) {
	return func(_ context.Context, h *environment) (group, error) {
		w := &peerWork{op: name, ours: name, Rounds: max(h.scaleRounds(samples), 256)}
		return group{rounds: 5, cases: []Case{{Name: "torchloader_" + name, Unit: PerSecond,
			Target: timesPeer(times), Peer: w}}}, nil
	}
}

// writePartnerFiles writes the photographs for the script to its directory and returns the
// environment with the path of shoal-torch. The program is installed beside the current one or on
// the PATH, or built from its source. The error wraps [ErrPeer] if it cannot be built.
func writePartnerFiles(ctx context.Context, dir string) (env []string, err error) {
	if err := takePhotographs(dir); err != nil {
		return nil, err
	}
	const name, source = "shoal-torch", "github.com/shoal-mp/shoal/cmd/shoal-torch"
	found := func(path string) []string { return append(os.Environ(), "SHOAL_TORCH="+path) }
	if self, err := os.Executable(); err == nil {
		if beside, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
			return found(beside), nil
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return found(path), nil
	}
	built := filepath.Join(dir, name)
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", built, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf(
			"%w: the program %s is neither in the directory of this program nor on the PATH, and building it "+
				"failed: %w: %s",
			ErrPeer, name, err, out)
	}
	return found(built), nil
}

// takePhotographs writes 100 JPEG files to dir: gradients with noise, which gives them the size
// of photographs.
func takePhotographs(dir string) error {
	const side = 224
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 100 {
		img := image.NewRGBA(image.Rect(0, 0, side, side))
		for y := range side {
			for x := range side {
				img.SetRGBA(x, y, color.RGBA{uint8(x + random.IntN(32)), uint8(y + random.IntN(32)),
					uint8(n + random.IntN(64)), 255})
			}
		}
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d.jpg", n)))
		if err != nil {
			return err
		}
		if err := jpeg.Encode(f, img, &jpeg.Options{Quality: 90}); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
