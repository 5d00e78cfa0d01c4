package bench

import (
	"math"
	"slices"
)

// median returns the median of the samples, or NaN if there are none.
func median(samples []float64) float64 { return quantile(samples, 0.5) }

// spread returns the distance between the tenth and the ninetieth percentile, relative to the
// median. It returns 0 if the median is 0, and NaN without samples.
func spread(samples []float64) float64 {
	m := median(samples)
	if m == 0 {
		return 0
	}
	return (quantile(samples, 0.9) - quantile(samples, 0.1)) / m
}

// noisy is the spread above which a row has no verdict.
const noisy = 0.3

// quantile returns the q-quantile with linear interpolation, for q between 0 and 1. It returns NaN
// without samples.
func quantile(samples []float64, q float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(samples))
	at := q * float64(len(s)-1)
	i := int(at)
	if i == len(s)-1 {
		return s[i]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}
