package bench

import (
	"math"
	"slices"
)

// median returns the middle of the samples, between the two middle ones of an even number. It is
// NaN without samples.
func median(samples []float64) float64 { return quantile(samples, 0.5) }

// spread returns how far the samples lie apart: from the tenth to the ninetieth of a hundred, as a
// part of the median.
func spread(samples []float64) float64 {
	m := median(samples)
	if m == 0 {
		return 0
	}
	return (quantile(samples, 0.9) - quantile(samples, 0.1)) / m
}

// noisy is the spread above which a row says nothing about its target.
const noisy = 0.3

// quantile interpolates between the two samples next to q, which is 0 for the least and 1 for the
// most.
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
