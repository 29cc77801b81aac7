/** Who gets a place: the rules of D56, D58 and D59, without the database. */
import { type PoolDifference, poolDifference } from '../../model/pool.ts'
import type { StoredAddress } from '../store/online-rows.ts'
import type { FoundHolder } from '../store/online-writer.ts'

/** A tunnel that has a place, or wants it. */
type Holder = Pick<FoundHolder, 'tunnelId' | 'sessionId' | 'nodeId'>

/** A holder as it is stored. */
export type JudgedHolder = Holder & Pick<FoundHolder, 'isAlive' | 'isLost'>

/** A tunnel that wants a place, and the terms on which it would share it. */
export type Applicant = Holder &
  Pick<Parameters<typeof poolDifference>[0], 'version' | 'pool'> & { readonly ownerId: string }

/** A place as it is stored: its holders, and the terms on which they have it. */
export interface JudgedAddress<Held extends JudgedHolder>
  extends Pick<StoredAddress, 'isPooled' | 'ownerId' | 'digest'> {
  readonly holders: readonly Held[]
}

type Decision<Held extends JudgedHolder> =
  | {
      readonly isGranted: false
      readonly difference: PoolDifference
      /** Where only lost nodes are in the way: their holders. They keep the place unless it turns out that it is free there. */
      readonly lost: readonly Held[]
    }
  | {
      readonly isGranted: true
      /** Those who lose the place. */
      readonly replaced: readonly Held[]
    }

/** Decides whether a tunnel gets an address, alone or as a member of its pool. */
export function decideReservation<Held extends JudgedHolder>(
  reservation: Applicant,
  place: JudgedAddress<Held>,
): Decision<Held> {
  const { holders } = place
  // Holders at this node were decided before; their rows may be stale.
  const others = holders.filter(({ isAlive, isLost, nodeId }) => (isAlive || isLost) && nodeId !== reservation.nodeId)
  const strangers = others.filter((holder) => !isSame(reservation, holder))
  const [stranger] = strangers
  if (!stranger) return { isGranted: true, replaced: holders }
  const difference = poolDifference(reservation, termsOf(place, stranger))
  if (difference === undefined)
    return { isGranted: true, replaced: holders.filter((holder) => !strangers.includes(holder)) }
  if (strangers.some(({ isAlive }) => isAlive)) return { isGranted: false, difference, lost: [] }
  // Versions before this one stored no owner where there was no pool.
  const isOwn = place.ownerId !== '' && place.ownerId === reservation.ownerId
  return isOwn ? { isGranted: true, replaced: holders } : { isGranted: false, difference, lost: strangers }
}

/** The terms on which a holder has a place; they are the same for all its holders. */
export function termsOf({ isPooled, ownerId, digest }: Omit<JudgedAddress<never>, 'holders'>, { tunnelId }: Holder) {
  return { tunnelId, version: digest, pool: isPooled ? { ownerId } : undefined }
}

/** Whether both are the same agent, which came back with its cookie or with the token of its address. */
function isSame({ tunnelId, sessionId }: Holder, holder: Holder): boolean {
  return holder.sessionId === sessionId || holder.tunnelId === tunnelId
}
