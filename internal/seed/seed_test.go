package seed_test

import (
	"context"
	"testing"

	"github.com/shoal-mp/shoal/internal/seed"
)

func TestTheSameSeedGivesTheSameSequence(t *testing.T) {
	a, b := seed.New(5), seed.New(6)
	first, second := a.Next(), a.Next()
	if first == second || first == b.Next() {
		t.Error("seeds of two starts, or of two sources, are equal")
	}
	b.Set(5)
	if b.Initial() != 5 || b.Next() != first || b.Next() != second {
		t.Error("after Set it does not begin anew")
	}
}

func TestWatchersHearOfEachSet(t *testing.T) {
	s := seed.New(1)
	var heard []uint64
	s.Watch(func(v uint64) { heard = append(heard, v) })
	s.Set(2)
	if len(heard) != 2 || heard[0] != 1 || heard[1] != 2 {
		t.Error(heard)
	}
}

func TestWorkersHaveDifferentSeeds(t *testing.T) {
	seen := map[uint64]string{}
	for _, base := range []uint64{0, 1, 1 << 63} {
		for _, name := range []string{"", "a", "b", "ab", "ba"} {
			for rank := range 20 {
				for life := range 3 {
					v := seed.Of(base, name, rank, life)
					if seen[v] != "" {
						t.Fatalf("%q, rank %d, life %d has the seed of %s", name, rank, life, seen[v])
					}
					seen[v] = name + "."
				}
			}
		}
	}
}

func TestAContextHasASource(t *testing.T) {
	s := seed.New(1)
	if seed.From(seed.With(context.Background(), s)) != s || seed.From(context.Background()) != seed.Process {
		t.Error("another source")
	}
}
