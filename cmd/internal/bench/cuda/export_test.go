package cuda

// Targets of the rows.
var HandedOver, OfDriver, OfBandwidth, AsTorch, Nothing = handedOver, ofDriver, ofBandwidth, asTorch, nothing
