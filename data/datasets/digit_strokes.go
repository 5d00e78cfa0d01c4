package datasets

// A point is a position in the unit square of a digit. y grows downwards, as in an image.
type point struct{ x, y float64 }

// A stroke is one movement of the pen through its points, along a curve if it is smooth and along
// straight lines otherwise.
type stroke struct {
	smooth bool
	points []point
}

func curvedStroke(points ...point) stroke   { return stroke{true, points} }
func straightStroke(points ...point) stroke { return stroke{false, points} }

// digitStrokes lists the common ways of writing each digit.
var digitStrokes = [10][][]stroke{
	0: {
		{curvedStroke(point{.55, 0}, point{.22, .12}, point{.08, .5}, point{.24, .9}, point{.55, 1}, point{.84, .82},
			point{.92, .45}, point{.78, .1}, point{.5, .01})},
		{curvedStroke(point{.72, .1}, point{.42, 0}, point{.16, .25}, point{.12, .66}, point{.36, .98},
			point{.7, .88}, point{.88, .5}, point{.76, .14}, point{.58, .06})},
		{curvedStroke(point{.5, 0}, point{.3, .2}, point{.24, .5}, point{.3, .82}, point{.5, 1}, point{.7, .8},
			point{.76, .5}, point{.7, .2}, point{.46, .02})},
	},
	1: {
		{straightStroke(point{.5, 0}, point{.5, 1})},
		{straightStroke(point{.56, 0}, point{.52, .5}, point{.46, 1})},
		{straightStroke(point{.3, .24}, point{.54, 0}, point{.54, 1})},
		{straightStroke(point{.3, .2}, point{.52, 0}, point{.52, 1}), straightStroke(point{.26, 1}, point{.8, .99})},
	},
	2: {
		{curvedStroke(point{.14, .26}, point{.3, .05}, point{.6, 0}, point{.82, .2}, point{.72, .46},
			point{.42, .74}, point{.12, .98}), straightStroke(point{.12, .98}, point{.9, .96})},
		{curvedStroke(point{.16, .2}, point{.42, 0}, point{.76, .1}, point{.8, .38}, point{.56, .7}, point{.26, .94},
			point{.1, .88}, point{.26, .76}, point{.52, .9}, point{.92, .94})},
		{curvedStroke(point{.2, .12}, point{.56, .01}, point{.8, .24}, point{.62, .56}, point{.18, .94}),
			curvedStroke(point{.18, .94}, point{.4, .88}, point{.64, .97}, point{.94, .86})},
	},
	3: {
		{curvedStroke(point{.16, .12}, point{.48, 0}, point{.8, .14}, point{.74, .38}, point{.42, .48}),
			curvedStroke(point{.42, .48}, point{.8, .56}, point{.86, .82}, point{.54, 1}, point{.12, .9})},
		{curvedStroke(point{.2, .08}, point{.6, .02}, point{.78, .22}, point{.6, .42}, point{.4, .46},
			point{.7, .52}, point{.84, .74}, point{.62, .96}, point{.3, 1}, point{.12, .86})},
		{straightStroke(point{.16, .03}, point{.8, .02}, point{.44, .4}),
			curvedStroke(point{.44, .4}, point{.78, .48}, point{.84, .78}, point{.56, .99}, point{.14, .92})},
	},
	4: {
		{straightStroke(point{.3, 0}, point{.12, .56}, point{.88, .56}), straightStroke(point{.7, .1}, point{.66, 1})},
		{straightStroke(point{.66, 0}, point{.08, .66}, point{.92, .66}), straightStroke(point{.66, 0}, point{.66, 1})},
		{curvedStroke(point{.2, .02}, point{.16, .36}, point{.34, .52}, point{.74, .44}),
			straightStroke(point{.78, 0}, point{.74, .44}, point{.66, 1})},
		{straightStroke(point{.74, .02}, point{.14, .58}, point{.9, .52}),
			straightStroke(point{.72, .3}, point{.6, 1})},
	},
	5: {
		{straightStroke(point{.84, .02}, point{.28, .02}, point{.22, .44}),
			curvedStroke(point{.22, .44}, point{.58, .36}, point{.86, .62}, point{.66, .94}, point{.12, .94})},
		{straightStroke(point{.3, .06}, point{.24, .46}),
			curvedStroke(point{.24, .46}, point{.6, .42}, point{.8, .66}, point{.62, .96}, point{.16, .96}),
			straightStroke(point{.3, .06}, point{.88, .0})},
		{curvedStroke(point{.82, .04}, point{.4, .06}, point{.26, .24}, point{.44, .44}, point{.74, .6},
			point{.72, .88}, point{.42, 1}, point{.14, .88})},
	},
	6: {
		{curvedStroke(point{.7, 0}, point{.36, .26}, point{.18, .66}, point{.36, .98}, point{.7, .94},
			point{.82, .7}, point{.58, .52}, point{.28, .64}, point{.2, .76})},
		{curvedStroke(point{.54, 0}, point{.28, .36}, point{.22, .78}, point{.46, 1}, point{.76, .86},
			point{.7, .58}, point{.42, .56}, point{.24, .76})},
		{curvedStroke(point{.84, .06}, point{.46, .12}, point{.2, .5}, point{.24, .9}, point{.6, 1}, point{.84, .78},
			point{.66, .54}, point{.32, .6}, point{.2, .72})},
	},
	7: {
		{straightStroke(point{.12, .04}, point{.86, .02}, point{.42, 1})},
		{straightStroke(point{.12, .08}, point{.84, .04}), curvedStroke(point{.84, .04}, point{.6, .4},
			point{.46, .72}, point{.42, 1})},
		{straightStroke(point{.14, .04}, point{.86, .04}, point{.46, 1}),
			straightStroke(point{.3, .52}, point{.86, .48})},
		{straightStroke(point{.14, .2}, point{.16, .04}, point{.84, .04}, point{.52, 1})},
	},
	8: {
		{curvedStroke(point{.76, .14}, point{.48, 0}, point{.22, .18}, point{.4, .42}, point{.72, .64},
			point{.78, .88}, point{.48, 1}, point{.2, .86}, point{.32, .62}, point{.66, .38}, point{.78, .16},
			point{.62, .02})},
		{curvedStroke(point{.5, 0}, point{.24, .16}, point{.36, .42}, point{.64, .42}, point{.78, .18},
			point{.5, 0}), curvedStroke(point{.5, .46}, point{.18, .68}, point{.3, .96}, point{.66, .97},
			point{.84, .7}, point{.5, .46})},
		{curvedStroke(point{.54, .46}, point{.3, .28}, point{.46, .02}, point{.74, .12}, point{.64, .4},
			point{.34, .66}, point{.28, .92}, point{.56, 1}, point{.76, .8}, point{.56, .48})},
	},
	9: {
		{curvedStroke(point{.78, .2}, point{.5, 0}, point{.2, .18}, point{.26, .46}, point{.58, .48},
			point{.78, .2}), curvedStroke(point{.78, .2}, point{.76, .6}, point{.6, 1})},
		{curvedStroke(point{.76, .12}, point{.4, .02}, point{.18, .26}, point{.38, .48}, point{.7, .38},
			point{.76, .12}), straightStroke(point{.76, .12}, point{.72, 1})},
		{curvedStroke(point{.8, .22}, point{.52, .0}, point{.22, .2}, point{.4, .44}, point{.76, .26}),
			curvedStroke(point{.78, .2}, point{.84, .6}, point{.66, .94}, point{.28, .96})},
	},
}
