//go:build amd64 || arm64

package kernel

import "github.com/shoal-mp/shoal/internal/kernel/asm"

// convertTiles converts the table of package asm to the type of this package.
func convertTiles[F Float](table [][]asm.Tile[F]) [][]tile[F] {
	all := make([][]tile[F], len(table))
	for i, row := range table {
		for _, t := range row {
			all[i] = append(all[i], tile[F](t))
		}
	}
	return all
}
