package sqlite

import "context"

// DSN is open to the tests, which look at what each connection is set to.
var DSN = dsn

// Pending is how many wait to write, and the one who does.
func (s *Store) Pending() int { return s.writers.Pending() }

// Impatient takes the connection that writes until it is given back. From then on it waits for nobody else's lock.
func (s *Store) Impatient(ctx context.Context) (give func(), err error) {
	session, err := s.write.take(ctx)
	if err != nil {
		return nil, err
	}
	_, err = session.conn.ExecContext(ctx, "PRAGMA busy_timeout = 0")
	return func() { s.write.give(session) }, err
}

// Statements are all statements by the name of their constant.
var Statements = map[string]string{
	"buryAllWorkers": buryAllWorkers, "registerWorker": registerWorker, "renewLease": renewLease, "retireWorker": retireWorker,
	"buryWorkers": buryWorkers, "forgetWorkers": forgetWorkers, "claimReply": claimReply, "claimConversation": claimConversation,
	"claimNewTurn": claimNewTurn, "claimOldTurn": claimOldTurn, "insertCall": insertCall, "lookupConversation": lookupConversation,
	"lookupTurn": lookupTurn, "lookupReplies": lookupReplies, "readPath": readPath, "permitCall": permitCall, "permittedBefore": permittedBefore,
	"closeCall": closeCall, "growLog": growLog, "askReply": askReply, "insertChunk": insertChunk, "endReply": endReply,
	"deleteChunks": deleteChunks, "closeOpenCalls": closeOpenCalls, "staleEverywhere": staleEverywhere,
	"staleInConversation": staleInConversation, "readLedger": readLedger, "sweepReply": sweepReply,
	"readReply": readReply, "findTurn": findTurn, "repliesTo": repliesTo, "readSiblings": readSiblings, "readShown": readShown,
	"createConversation": createConversation, "readConversation": readConversation, "listConversations": listConversations, "lookedUpTo": lookedUpTo,
	"updateConversation": updateConversation, "readChunks": readChunks, "supersedeReply": supersedeReply, "stopTurn": stopTurn, "stopReply": stopReply, "noteStop": noteStop,
	"moveVersion": moveVersion, "moveLeaf": moveLeaf, "selectReply": selectReply, "moveSlot": moveSlot,
	"ownedReplies": ownedReplies, "readUnsettled": readUnsettled, "mayReturn": mayReturn, "reviveReply": reviveReply,
	"reopenCall": reopenCall, "salvageReply": salvageReply, "settleReply": settleReply, "correctCall": correctCall,
	"leafBack": leafBack, "markFollowed": markFollowed, "takeOverReply": takeOverReply, "restoreReply": restoreReply,
	"moveToCall": moveToCall, "noteCall": noteCall, "readCall": readCall, "listCalls": listCalls, "listCallsOf": listCallsOf,
	"sumCalls": sumCalls, "sumCallsOf": sumCallsOf, "heldReplies": heldReplies, "readBacklog": readBacklog, "dueLookups": dueLookups, "takeLookup": takeLookup,
	"wakeLookup": wakeLookup, "readHeld": readHeld, "resolveHeld": resolveHeld, "isAttempt": isAttempt, "heldCalls": heldCalls,
	"conversationSpent": conversationSpent, "passConversation": passConversation, "tenantSpent": tenantSpent, "passTenant": passTenant,
	"insertDefaults": insertDefaults, "readDefaults": readDefaults,
	"archiveNames": archiveNames, "deleteUnused": deleteUnused, "readArchivedConversation": readArchivedConversation, "readArchivedDefaults": readArchivedDefaults,
	"readArchivedRows": readArchivedRows, "readArchivedCalls": readArchivedCalls, "readArchivedCallsOf": readArchivedCallsOf,
	"writeArchivedConversation": writeArchivedConversation, "writeArchivedDefaults": writeArchivedDefaults,
	"writeArchivedRow": writeArchivedRow, "writeArchivedCall": writeArchivedCall,
	"lockConversation": lockConversation, "markDeleted": markDeleted, "dropLine": dropLine, "runningReplies": runningReplies,
	"endDeleted": endDeleted, "closeDeletedCalls": closeDeletedCalls, "findMark": findMark, "readTree": readTree,
	"eraseTurn": eraseTurn, "eraseReply": eraseReply, "readEnds": readEnds, "newestTurn": newestTurn, "moveEnds": moveEnds,
	"findErased": findErased, "toErase": toErase, "isToErase": isToErase, "eraseChunks": eraseChunks, "eraseDefaults": eraseDefaults,
	"closeLeftCalls": closeLeftCalls, "noteErased": noteErased, "newestRows": newestRows, "cutBelow": cutBelow, "eraseRow": eraseRow,
	"isLive": isLive, "newestLeaf": newestLeaf,
	"listWorkers": listWorkers, "moveSeq": moveSeq, "growGeneration": growGeneration, "restoreCall": restoreCall,
	"enqueueTurn": enqueueTurn, "lineLength": lineLength, "moveLine": moveLine, "leaveLine": leaveLine, "insertDeparted": insertDeparted,
	"readPlace": readPlace, "idleLines": idleLines, "readLine": readLine, "hasLine": hasLine, "lookupLeaf": lookupLeaf, "lookupBeside": lookupBeside,
	"readShare": readShare, "readSpent": readSpent, "readQuota": readQuota, "writeShare": writeShare, "makeQuota": makeQuota, "moveQuota": moveQuota,
	"readPlaceOf": readPlaceOf, "readNewest": readNewest, "endedShares": endedShares, "endedSharesOfTenant": endedSharesOfTenant,
	"openSharesOfTurn": openSharesOfTurn, "openSharesOfConversation": openSharesOfConversation, "eraseShares": eraseShares,
	"openCharge": openCharge, "forgetQuotas": forgetQuotas, "forgetShares": forgetShares,
	"createKey": createKey, "findKey": findKey, "listKeys": listKeys, "listKeysOf": listKeysOf, "revokeKey": revokeKey,
	"readArchivedTakeovers": readArchivedTakeovers, "readArchivedRepeats": readArchivedRepeats,
	"writeArchivedTakeover": writeArchivedTakeover, "writeArchivedRepeats": writeArchivedRepeats,
	"storyTurn": storyTurn, "storyReplies": storyReplies, "storyTakeovers": storyTakeovers, "storyCalls": storyCalls,
	"storyRepeats": storyRepeats, "addRepeats": addRepeats, "sumRepeats": sumRepeats, "sumRepeatsOf": sumRepeatsOf,
	"tellTakeover": tellTakeover, "untellTakeovers": untellTakeovers, "eraseTakeovers": eraseTakeovers,
	"suspend": suspend, "reinstate": reinstate, "isSuspended": isSuspended, "listSuspended": listSuspended,
}
