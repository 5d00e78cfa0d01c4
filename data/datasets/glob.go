package datasets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrPattern is wrapped if a pattern of paths is malformed, or if no file matches it.
var ErrPattern = errors.New("datasets: invalid path pattern")

// maxPaths is the maximum number of paths from the braces of a pattern.
const maxPaths = 1 << 20

// Glob returns the paths described by patterns, in the order of the patterns. Braces are
// expanded as in bash and WebDataset: "train-{000..012}.tar" expands to 13 paths and
// "{train,val}.tar" to two, whether the files exist or not. Then *, ? and [ match existing files
// as in [filepath.Glob], in the order of their names. A pattern that is the name of an existing
// file is not expanded. The error wraps [ErrPattern] if no file matches *, ? or [, if a pattern
// is malformed, or if braces expand to more than 1<<20 paths.
func Glob(patterns ...string) (paths []string, err error) {
	for _, pattern := range patterns {
		if _, err := os.Lstat(pattern); err == nil || !strings.ContainsAny(pattern, "*?[{") {
			paths = append(paths, pattern)
			continue
		}
		names, err := expandBraces(pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			found := []string{name}
			if strings.ContainsAny(name, "*?[") {
				if found, err = filepath.Glob(name); err != nil {
					return nil, fmt.Errorf("%w %q: %w", ErrPattern, pattern, err)
				}
			}
			if len(found) == 0 {
				return nil, fmt.Errorf("%w: no file matches %q: %w", ErrPattern, name, fs.ErrNotExist)
			}
			paths = append(paths, found...)
		}
	}
	return paths, nil
}

// expandBraces expands the braces of a pattern. Braces without a comma or a range are kept. The
// error wraps [ErrPattern] if there would be more than maxPaths paths.
func expandBraces(pattern string) ([]string, error) {
	for begin := 0; begin < len(pattern); begin++ {
		if pattern[begin] != '{' {
			continue
		}
		end, commas := matchingBrace(pattern, begin)
		if end < 0 {
			continue
		}
		var choices []string
		if len(commas) > 0 {
			from := begin + 1
			for _, comma := range append(commas, end) {
				more, err := expandBraces(pattern[from:comma])
				if err != nil {
					return nil, err
				}
				choices = append(choices, more...)
				from = comma + 1
			}
		} else {
			var err error
			if choices, err = braceRange(pattern[begin+1 : end]); err != nil {
				return nil, fmt.Errorf("%w %q: %w", ErrPattern, pattern, err)
			}
		}
		if choices == nil {
			continue
		}
		rest, err := expandBraces(pattern[end+1:])
		if err != nil {
			return nil, err
		}
		if len(choices)*len(rest) > maxPaths {
			return nil, fmt.Errorf("%w %q: %w", ErrPattern, pattern, errManyPaths)
		}
		all := make([]string, 0, len(choices)*len(rest))
		for _, c := range choices {
			for _, r := range rest {
				all = append(all, pattern[:begin]+c+r)
			}
		}
		return all, nil
	}
	return []string{pattern}, nil
}

var errManyPaths = fmt.Errorf("braces expand to more than %d paths", maxPaths)

// matchingBrace returns the position of the brace that closes the one at begin, or -1, and the
// positions of the commas between them that are not in nested braces.
func matchingBrace(s string, begin int) (end int, commas []int) {
	depth := 0
	for i := begin; i < len(s); i++ {
		switch {
		case s[i] == '{':
			depth++
		case s[i] == ',' && depth == 1:
			commas = append(commas, i)
		case s[i] == '}':
			if depth--; depth == 0 {
				return i, commas
			}
		}
	}
	return -1, nil
}

// braceRange expands "000..012", "a..e" or "0..10..5". It returns nil for other strings. The
// error is errManyPaths for a range of more than maxPaths elements.
func braceRange(s string) ([]string, error) {
	bounds := strings.Split(s, "..")
	if len(bounds) != 2 && len(bounds) != 3 {
		return nil, nil
	}
	step := 1
	if len(bounds) == 3 {
		n, err := strconv.Atoi(bounds[2])
		if err != nil {
			return nil, nil
		}
		step = max(n, -n, 1)
	}
	first, err1 := strconv.Atoi(bounds[0])
	last, err2 := strconv.Atoi(bounds[1])
	width := 0
	name := func(n int) string { return fmt.Sprintf("%0*d", width, n) }
	switch {
	case err1 == nil && err2 == nil:
		for _, b := range bounds[:2] {
			if digits := strings.TrimPrefix(b, "-"); len(digits) > 1 && digits[0] == '0' {
				width = max(width, len(bounds[0]), len(bounds[1]))
			}
		}
	case len(bounds[0]) == 1 && len(bounds[1]) == 1:
		first, last = int(bounds[0][0]), int(bounds[1][0])
		name = func(n int) string { return string(rune(n)) }
	default:
		return nil, nil
	}
	n := max(first, last) - min(first, last)
	if n < 0 || n/step >= maxPaths {
		return nil, errManyPaths
	}
	if first > last {
		step = -step
	}
	all := make([]string, 0, n/max(step, -step)+1)
	for k := range cap(all) {
		all = append(all, name(first+k*step))
	}
	return all, nil
}
