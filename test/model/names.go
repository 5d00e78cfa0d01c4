package model

import "reflect"

// names maps types to the names of their constants in order, for traces.
var names = map[reflect.Type][]string{
	reflect.TypeFor[pc](): {
		"idle", "allocCAS", "allocOwn", "allocClear", "takeOwn", "takeCAS", "putSeq", "putStamp", "putTail",
		"putClaim", "putHelp", "putHelpOwn", "putBody", "putDrop", "putFull", "putClear", "putUndo",
		"getHead", "getTake", "getHelp", "getHelpOwn", "getOwn", "getStamp", "getSeq", "getTakeOver",
		"getWait", "getEmpty", "getClear", "getOwnLate", "relBit", "peekOwn0", "peekOwn1", "freeStamp",
		"freeOwn0", "freeOwn1", "freeCAS", "freeClear", "freeAgain0", "freeAgain1", "sendHandle",
		"sendWait", "importOwn", "importCheck", "reapSlots", "reapWords", "reapPut", "reapReading",
		"reapReadingClear", "reapStamps", "reapWait", "reapBits0", "reapBits1", "reapEnd",
	},
	reflect.TypeFor[endPC](): {
		"eIdle", "ePut", "ePutStamp", "ePutClaim", "ePutFull", "ePutClear", "ePutUndo", "eRecv", "eRecvWait",
		"eRecvAgain", "eGet", "eDrop", "eReapLook", "eReapSlots",
		"eReapWords", "eReapReading", "eReapStamps", "eReapWait", "eReapBits", "eReapEnd", "fRelease", "fTry",
		"fOwn", "fGone", "fHold", "fDrain",
		"fUnhold", "fImport", "fImportCheck", "fTell", "fFree", "fClear", "fAgain", "fTake", "fAcquire",
		"fStamp", "fEmpty", "fGot",
	},
	reflect.TypeFor[budgetPC](): {
		"bBegin", "bRecord", "bFrom", "bTarget", "bAdd", "bPhase", "bUnstamp", "bAllocate", "bCommitted",
		"bPhaseDone", "bUndo", "bPunch",
		"bPunchCommitted", "bSub", "bSubPhase", "bSubUnstamp", "bOwe", "bOweMore", "bUnlock", "bLimit", "bReapStamp",
		"bReapUnstamp", "bReapBlock", "bReapPunch",
		"bReapCommitted", "bReapSub", "bReapSubPhase", "bReapSubUnstamp", "bReapDone", "bReapUnlock", "bReapEnd",
	},
	reflect.TypeFor[noticePC](): {
		"nIdle", "nDeathEpoch", "nLock", "nSeen", "nReap", "nUnlock", "nAgain", "nLink", "nOpen", "nProof",
		"nJoinLock", "nJoining", "nJoinWake",
		"nJoinLive", "nJoinUnlock", "nLeaveDead", "nLeaveLock", "nLeaveUnlock", "nLeaveTell", "nLeaveFree",
		"nLeaveWake",
	},
	reflect.TypeFor[wakePC](): {
		"wStart", "wPick", "wWake", "wRewake", "wTry", "wBit", "wAgain", "wParked", "wLeave", "wPassOn",
		"wEnd", "bIdle", "bWaiters", "bLook", "bBit", "bAgain", "bPassOn", "wReapBits", "wReapWake",
	},
	reflect.TypeFor[newsPC](): {
		"nwIdle", "nwLock", "nwLook", "nwTake", "nwTaken", "nwClaim", "nwTail", "nwFull", "nwTell", "nwBegin",
		"nwTop", "nwScan", "nwPeeked", "nwDead",
	},
	reflect.TypeFor[xoPC](): {
		"xTry", "xBit", "xWait", "xParked", "xClear", "xTake", "xWake", "xEnd",
	},
	reflect.TypeFor[listPC](): {
		"lBegin", "lEpoch", "lReset", "lSweep", "lPunch", "lHead", "lNext", "lPop", "lUnlist", "lTake",
		"lFree", "lMark", "lTop", "lLink", "lPush", "lEnd",
	},
	reflect.TypeFor[boardPC](): {
		"dBegin", "dHeader", "dImport", "dImportCheck", "dMake", "dPublish", "dGo", "dStamp", "dScan",
		"dClaim", "dFull", "dClear", "dUndo", "dDone",
		"dFind", "dHold", "dCheck", "dHeld", "dTake", "dTakeOwn", "dTakeStamp", "dEmpty", "dTakeClear",
		"dEnd", "dTry", "dOwn", "dAgain", "dReapSlots",
		"dReapWords", "dReapReading", "dReapGets", "dReapWait", "dReapBits", "dReapFree",
	},
	reflect.TypeFor[countPC](): {
		"cStart", "cLock", "cCount", "cBit", "cUnlock", "cStamp", "cClear", "cDrop", "cDropLock",
		"cDropCount", "cDropBit", "cDropUnlock", "cTry",
		"cOwn", "cFree", "cBack", "cAgain", "cEnd",
	},
	reflect.TypeFor[mutexPC](): {
		"mTry", "mSetBit", "mAgain", "mParked", "mFirst", "mSecond", "mMarkGood", "mWithdraw", "mUnlock",
		"mPick", "mWake", "mDone",
	},
	reflect.TypeFor[semPC](): {
		"sWait", "sEnter", "sRedo", "sLook", "sSettle", "sGrant", "sExit", "sHold", "sDone",
	},
	reflect.TypeFor[condPC](): {
		"cwLock", "cwMark", "cwUnshare", "cwCheck", "cwAdd", "cwNotify", "cwShare", "cwArrive", "cwLetGo",
		"cwWait", "cwServe", "cwForget", "cwForgo", "cwUnlock", "cwEnd",
	},
	reflect.TypeFor[bnPC](): {
		"bnCome", "bnEnter", "bnLook", "bnSay", "bnSleep", "bnAsleep", "bnLoad", "bnEnd", "bnWake",
	},
	reflect.TypeFor[payerPC](): {
		"yIdle", "yUnstamp", "yPaid",
	},
	reflect.TypeFor[asidePC](): {
		"asIdle", "asOperate", "asHold", "asBegin", "asWait", "asOut", "asStamps", "asBits", "asTry",
		"asReapWait", "asFree", "asPeek", "asOwners", "asGone", "asMessage", "asTell", "asLast",
	},
	reflect.TypeFor[blamePC](): {
		"gHolds", "gClears", "gDrops", "gTries", "gEnd",
	},
	reflect.TypeFor[life](): {
		"alive", "killed", "marked", "reaped",
	},
	reflect.TypeFor[slotState](): {
		"empty", "writing", "full", "reading", "skip",
	},
	reflect.TypeFor[newsSlot](): {
		"empty", "writing", "full", "reading", "skip", "gone",
	},
	reflect.TypeFor[kind](): {
		"nobody", "kAlloc", "kPut", "kGet", "kFree",
	},
	reflect.TypeFor[entryState](): {
		"vacant", "joining", "live", "dead",
	},
	reflect.TypeFor[fate](): {
		"outside", "running", "gone", "away",
	},
}

// name returns the name of the constant for a value, or the value itself if its type has no
// names in names.
func name(v reflect.Value) any {
	if list, ok := names[v.Type()]; ok && int(v.Uint()) < len(list) {
		return list[v.Uint()]
	}
	return v
}
