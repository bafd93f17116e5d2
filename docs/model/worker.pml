/* What one worker does. Each option is one step that may be taken whenever its condition holds; the order is nobody's.
   A worker that is away has no database; its memory and its provider go on. */

#define DB (!away[w])
#define WELL (lease[me[w]]==ALIVE)
#ifdef M_NOFENCE
#define MAY_SEND 1
#else
#define MAY_SEND (WELL && job[w].own==me[w])
#endif
#ifdef ENFORCED
#define BYTES (C + job[w].gen)   /* the key names turn and generation: the provider repeats itself */
#else
#define BYTES job[w].call
#endif
#define AT(x) (job[w].at==x)
#define AT_WORK (AT(CLAIMED) || AT(STREAMING))
#define LOST (AT_WORK && DB && !HELD)   /* a checkpoint has changed nothing, and the row is read to see why */
#define VANISHED ((AT_WORK || AT(PAUSED)) && DB && GONE)
#define STALE (DB && WELL && RUNNING && lease[reply[LIVING].own]==DEAD)
#if OUTAGE>0
#define MAY_CONDEMN (WELL && steady[w])
#else
#define MAY_CONDEMN WELL
#endif
#ifdef M_NOBURY
#define SWEEPABLE (DB && WELL && RUNNING && lease[reply[LIVING].own]!=ALIVE)
#else
#define SWEEPABLE STALE
#endif
#ifdef TWOSTEP
#define IN_BETWEEN (found[w]!=0)
#ifdef M_FOLD
#define SAME_LENGTH 1
#else
#define SAME_LENGTH (reply[found[w]-1].log==found_len[w])
#endif
#endif

proctype Worker(byte w) {
end: do

/* a delivery: look, then claim what was seen; a claim that is lost looks again, which is a delivery of its own here */
:: atomic { DB && WELL && AT(IDLE) && deliver>0 && FREE && rows<R && calls<C-1 && UNCANCELLED && !later &&
            (rows==0 || CURABLE(reply[NEWEST].why)) -> printf("@ look w%d\n", w);
     d_step { deliver--; job[w].at = LOOKED; fresh[w] = 1 } }
:: atomic { AT(LOOKED) && DB && rows<R && calls<C-1 -> printf("@ claim w%d\n", w);
     if
     :: CAN_CLAIM && WELL -> d_step { begin(); calls++; start(calls, gen); claim(calls); job[w].at = CLAIMED; commit() }
#if UNKNOWN>0
     :: CAN_CLAIM && WELL && unknown>0 -> printf("@   committed, and the answer is lost\n");
        d_step { unknown--; calls++; start(calls, gen); claim(calls); job[w].at = UNSURE; commit() }
     :: unknown>0 && WELL && flying[w]==0 -> printf("@   still on its way\n");
        d_step { unknown--; calls++; start(calls, gen); flying[w] = me[w]; flying_id[w] = calls; flying_fresh[w] = fresh[w]; job[w].at = UNSURE }
#endif
     :: !(CAN_CLAIM && WELL) -> d_step { forget() }
     fi }
#if UNKNOWN>0
:: atomic { flying[w]!=0 -> printf("@ the claim lands, or not w%d\n", w);
     if
     :: flying_fresh[w] && INDEX && UNCANCELLED && rows<R && lease[flying[w]]!=DEAD ->
        d_step { insert(flying_id[w], flying_id[w], gen, 1, flying[w]); flying[w] = 0; flying_id[w] = 0; commit() }
     :: d_step { flying[w] = 0; flying_id[w] = 0; flying_fresh[w] = 0 }
     fi }
:: atomic { AT(UNSURE) && DB && flying[w]==0 -> printf("@ look for the claim by its id w%d\n", w);
     d_step {
#ifdef M_CLAIMUNKNOWN
       forget()
#else
       n = 0;
       for (i : 0 .. R-1) { if :: reply[i].st!=NONE && reply[i].id==job[w].id -> n = i+1 :: else fi };
       if
       :: n>0 && reply[n-1].st==IN_FLIGHT && reply[n-1].own==job[w].own -> job[w].r = n-1; job[w].at = CLAIMED
       :: else -> forget()   /* ended by another hand, or never carried out: a delivery looks again */
       fi;
       i = 0; n = 0
#endif
     } }
#endif

/* the call */
:: atomic { AT(CLAIMED) && MAY_SEND -> printf("@ send w%d\n", w);
     d_step {
       assert(ledger[job[w].call]!=0 || moved_back);       /* P3: on the ledger before it is sent */
       assert(!sent[job[w].call]);                         /* P3: a row of the ledger is one request */
       assert(!(SAME && MINE.st==ABANDONED && MINE.why==BECAUSE_LEASE));   /* P3: not on a claim that was swept */
       only_call(); sent[job[w].call] = 1; job[w].at = STREAMING } }
:: atomic { AT(CLAIMED) && job[w].own!=me[w] && DB && HELD -> printf("@ leave: buried before it was sent w%d\n", w);
     d_step { close_lost(); forget() } }
:: atomic { AT(STREAMING) && job[w].log<L -> printf("@ a byte w%d\n", w);
     d_step { job[w].b[job[w].log] = BYTES; job[w].log++ } }
:: atomic { AT(STREAMING) && fail>0 && job[w].log<L && ((job[w].log==0 && calls<C-1) || (DB && HELD)) -> printf("@ the provider fails w%d\n", w); fail--;
     if
     :: job[w].log==0 && calls<C-1 -> d_step { close_lost(); job[w].at = PAUSED }   /* surely nothing came of it: again, later */
#ifdef M_SAMEROW
     :: job[w].log>0 && calls<C-1 && DB && HELD -> d_step { close_lost(); MINE.log = 0; job[w].log = 0; permit() }
#endif
     :: DB && HELD -> printf("@ abandon\n"); d_step { begin(); abandon(BECAUSE_ERROR); forget(); commit() }
     :: DB && HELD -> printf("@ abandon, refused\n"); d_step { begin(); abandon(BECAUSE_REFUSED); forget(); commit() }
     fi }
:: atomic { AT(PAUSED) && DB && HELD && !MINE.stop && calls<C-1 -> printf("@ permit w%d\n", w); d_step { begin(); permit(); commit() } }
:: atomic { AT(PAUSED) && DB && !HELD && (LOSE==0 || !GONE) -> printf("@ permit refused w%d\n", w);
     d_step { if :: OUTSIDE -> settle() :: else fi; forget(); commit() } }

/* its writes, under the fence */
#ifdef M_GUARDREAD
:: atomic { AT(STREAMING) && DB && HELD && job[w].log>MINE.log -> printf("@ read the fence w%d\n", w); job[w].at = GUARD_READ }
:: atomic { AT(GUARD_READ) && DB -> printf("@ checkpoint w%d\n", w); d_step { checkpoint(); job[w].at = STREAMING; commit() } }
#else
:: atomic { AT(STREAMING) && DB && HELD && job[w].log>MINE.log -> printf("@ checkpoint w%d\n", w); d_step { begin(); checkpoint(); commit() } }
#endif
:: atomic { AT(STREAMING) && DB && HELD && job[w].log==L -> printf("@ complete w%d\n", w);
     if
     :: d_step { begin(); complete(); forget(); commit() }
#if UNKNOWN>0
     :: unknown>0 -> printf("@   committed, and the answer is lost\n"); d_step { unknown--; complete(); job[w].at = UNSURE_END; commit() }
     :: unknown>0 -> printf("@   not committed, and the answer is lost\n"); d_step { unknown--; job[w].at = UNSURE_END }
#endif
     fi }
#if UNKNOWN>0
:: atomic { AT(UNSURE_END) && DB -> printf("@ read what became of the ending w%d\n", w);
     d_step {
#ifdef M_ENDUNKNOWN
       close_lost(); forget()
#else
       if
       :: HELD -> job[w].at = STREAMING          /* it was not written: again */
       :: SAME && (MINE.st==COMPLETE || MINE.settled) -> forget()
       :: else -> job[w].at = STREAMING          /* ended from outside, taken or gone: as after any write that changed nothing */
       fi
#endif
     } }
#endif
:: atomic { (AT_WORK || AT(PAUSED)) && DB && HELD && MINE.stop -> printf("@ abandon: asked to stop w%d\n", w);
     d_step { begin(); abandon(BECAUSE_CANCELLED); forget(); commit() } }

/* a write has changed nothing: read why, and do what the table says */
:: atomic { (LOST || (AT(PAUSED) && DB && !HELD)) && CAN_COME_BACK && WELL && MINE.ep<MAXEP && (AT(CLAIMED) || job[w].log<L) -> printf("@ revive w%d\n", w);
     d_step { begin(); revive(); commit() } }
:: atomic { LOST && CAN_COME_BACK && AT(STREAMING) && job[w].log==L -> printf("@ salvage w%d\n", w);
     d_step { begin(); salvage(); forget(); commit() } }
:: atomic { LOST && OUTSIDE && !(CAN_COME_BACK && ((MINE.ep<MAXEP && (AT(CLAIMED) || job[w].log<L)) || (AT(STREAMING) && job[w].log==L))) -> printf("@ settle w%d\n", w);
     d_step { begin();
#ifndef M_NOSETTLE
       settle();
#endif
       forget(); commit() } }
#if LOSE>0
#ifndef M_NOTBACK
:: atomic { VANISHED && CAN_INSERT_AGAIN -> printf("@ insert again w%d\n", w); d_step { begin(); insert_again(); commit() } }
:: atomic { VANISHED && !CAN_INSERT_AGAIN && WELL && rows<R -> printf("@ restore w%d\n", w); d_step { begin(); restore(); forget(); commit() } }
:: atomic { VANISHED && !CAN_INSERT_AGAIN && rows==R -> printf("@ there is no place for it w%d\n", w); d_step { forget() } }
#else
:: atomic { VANISHED -> d_step { forget() } }
#endif
#endif
:: atomic { LOST && !OUTSIDE && (LOSE==0 || !GONE) -> printf("@ leave: another has it w%d\n", w);
     d_step { close_lost(); forget() } }

/* whoever finds a lease run out buries first, and only then judges */
:: atomic { DB && WELL && MAY_CONDEMN && RUNNING && lease[reply[LIVING].own]==EXPIRED && reply[LIVING].own!=me[w] -> printf("@ bury w%d\n", w);
     d_step { bury_rightly(); lease[reply[LIVING].own] = DEAD } }
#ifdef TWOSTEP
:: atomic { SWEEPABLE && !IN_BETWEEN -> printf("@ read a stale reply w%d\n", w);
     d_step { found[w] = LIVING+1; found_ep[w] = reply[LIVING].ep; found_len[w] = reply[LIVING].log } }
:: atomic { DB && IN_BETWEEN -> printf("@ sweep w%d\n", w);
     d_step { begin();
       j = found[w]-1;
       if
       :: reply[j].st==IN_FLIGHT && reply[j].ep==found_ep[w] && SAME_LENGTH ->
          assert(reply[j].log==found_len[w]);              /* P6: what is written over the log is all of it */
          sweep(j)
       :: else
       fi;
       found[w] = 0; found_ep[w] = 0; found_len[w] = 0; j = 0; commit() } }
#else
:: atomic { SWEEPABLE -> printf("@ sweep w%d\n", w); d_step { begin(); n = LIVING; sweep(n); commit() } }
#endif
:: atomic { STALE && AT(IDLE) && CAN_TAKE_OVER -> printf("@ take_over w%d\n", w);
     d_step { begin(); voided = 1; n = LIVING; take_over(n); commit() }
#if UNKNOWN>0
     if :: unknown>0 -> printf("@   committed, and the answer is lost\n"); unknown--; job[w].at = UNSURE :: skip fi
#endif
   }
#ifndef M_NODEADLINE
:: atomic { DB && WELL && RUNNING && reply[LIVING].late -> printf("@ expire w%d\n", w); d_step { begin(); n = LIVING; expire(n); commit() } }
#endif
#ifndef M_NOAUDIT
:: atomic { DB && WELL && RUNNING && reply[LIVING].own==me[w] && job[w].id!=reply[LIVING].id -> printf("@ audit w%d\n", w);
     d_step { begin(); assert(moved_back);                 /* P10: only a failover makes a claim that nobody runs */
       n = LIVING; reply[n].settled = 1; end_outside(n, BECAUSE_SHUTDOWN); commit() } }
#endif

/* a stop, from any worker: ask, and end it where the owner does not */
:: atomic { DB && stop>0 && rows>0 && (RUNNING || (FREE && CURABLE(reply[NEWEST].why))) -> printf("@ RequestStop w%d\n", w);
     d_step { begin(); stop--; asked = gen;
#ifndef M_CANCELROW
       cancelled = gen;
#endif
       version(); if :: RUNNING -> reply[LIVING].stop = 1 :: else fi; commit() } }
:: atomic { DB && RUNNING && reply[LIVING].stop -> printf("@ cancel w%d\n", w);
     d_step { begin(); n = LIVING; cancel(n); commit() } }

/* regenerate and select: look, then compare and set */
:: atomic { DB && WELL && AT(IDLE) && clicks>0 && (FREE || reply[LIVING].st==COMPLETE) -> clicks--;
     if
#ifndef M_REGENANY
     :: gen>click_gen -> printf("@ RegenerateReply is a replay w%d\n", w)
#endif
     :: (CLICK_NEW && rows<R && calls<C-1) -> printf("@ RegenerateReply looks w%d\n", w); d_step { job[w].at = LOOKED_RE; fresh[w] = 1 }
     :: else
     fi }
:: atomic { AT(LOOKED_RE) && DB -> printf("@ supersede w%d\n", w);
     if
     :: fresh[w] && WELL && rows<R && calls<C-1 -> d_step { begin(); calls++; start(calls, gen+1); supersede(calls); job[w].at = CLAIMED; commit() }
     :: else -> d_step { forget(); clicks++ }
     fi }
#if SELECT>0
:: atomic { DB && AT(IDLE) && select_left>0 && !RUNNING && WHOLE_BEFORE -> printf("@ SelectReply looks w%d\n", w);
     d_step { select_left--; job[w].at = LOOKED_SE; fresh[w] = 1 } }
:: atomic { AT(LOOKED_SE) && DB -> printf("@ select_reply w%d\n", w);
     if
     :: CURRENT && WHOLE_BEFORE -> d_step { begin(); j = (OLD_WHOLE(0) -> 0 : 1); select_reply(j); j = 0; forget(); commit() }
     :: else -> d_step { forget() }
     fi }
#endif

/* its own lease */
:: atomic { DB && lease[me[w]]==EXPIRED -> printf("@ renew w%d\n", w); d_step { lease[me[w]] = ALIVE; renewed() } }
:: atomic { DB && lease[me[w]]==DEAD -> printf("@ take a new id w%d\n", w);
     d_step { lives++; assert(lives<LIVES); me[w] = lives; lease[lives] = ALIVE; renewed() } }
#if OUTAGE>0
:: atomic { DB && WELL && !steady[w] && ALL_RENEWED -> printf("@ a lease has passed in touch w%d\n", w); d_step { steady[w] = 1; excuse_absent() } }
#endif

/* shutdown: what can't be stored is spooled, and the next life of the process writes it through the same fence */
#if DRAIN>0
:: atomic { drain>0 && (AT_WORK || AT(PAUSED) || AT(UNSURE_END)) && spool[w].at==IDLE -> printf("@ SIGTERM w%d\n", w); drain--;
     if
     :: DB && HELD && !AT(UNSURE_END) -> printf("@ abandon: shutdown\n");
        d_step { begin(); abandon(BECAUSE_SHUTDOWN); forget(); commit(); lease[me[w]] = DEAD; reborn();
#if LOSE>0
          voided = 1   /* nobody is left to put it back */
#else
          skip
#endif
        }
     :: !DB -> printf("@ spool\n"); d_step { to_spool(); forget(); reborn() }
     :: else -> drain++
     fi }
:: atomic { spool[w].at!=IDLE && AT(IDLE) && DB -> printf("@ replay the spool w%d\n", w);
     d_step { from_spool();
#ifdef M_SPOOLDROP
       spool[w].at = IDLE
#else
       skip
#endif
     } }
:: atomic { AT(SPOOLED) && DB -> printf("@ write what was spooled w%d\n", w);
     d_step { begin();
#if LOSE>0
       if
       :: GONE && CAN_INSERT_AGAIN -> insert_again(); to_spool()   /* and then as any other */
       :: GONE && !CAN_INSERT_AGAIN && rows<R -> restore()
       :: else
       fi;
#endif
       if
#ifdef M_SPOOLBLIND
       :: job[w].log==L -> MINE.st = COMPLETE; MINE.why = 0; store_log(); MINE.settled = 1
#else
       :: HELD && job[w].log==L -> complete()
       :: HELD && job[w].log<L -> abandon(BECAUSE_SHUTDOWN)
       :: !HELD && CAN_COME_BACK && job[w].log==L -> salvage()
       :: !HELD && OUTSIDE && !(CAN_COME_BACK && job[w].log==L) -> settle()
#endif
       :: else -> close_lost()
       fi;
       owed = 0; job[w].at = WRITTEN; commit() } }
:: atomic { AT(WRITTEN) -> printf("@ drop it from the spool w%d\n", w); d_step { spool[w].at = IDLE; forget() } }
#endif
od }
