package top

var Fit = fit
