/**
 * First packets that a client sends on a guess of what will be agreed on (RFC 4253 §7): a right one is the beginning of the
 * exchange, a wrong one is passed over. The library takes every guess for a wrong one, and then dropbear waits for good.
 */
import type { Protocol } from 'ssh2'
import { algorithms } from './algorithms.ts'

/** Behind the type of the message and its random bytes. */
const LISTS_AT = 17
const LISTS = 10

/** From here on the connection tells guesses apart; at once, before the first packet is read. */
export function heedGuesses(protocol: Protocol): void {
  let isGuess = false
  Object.defineProperty(protocol, '_skipNextInboundPacket', {
    set: (value: boolean) => {
      isGuess = value
    },
    // Asked about each packet of an exchange of keys.
    get: () => isGuess && isWrongGuess(protocol._kex._remoteKexinit),
  })
}

/** Wrong unless what the client likes best, of key exchanges and of host keys, is what we like best. */
function isWrongGuess(offer: Buffer): boolean {
  const [kex, hostKey] = [listAt(offer, 0), listAt(offer, 1)]
  const isFollowed = offer[endOfLists(offer)] === 1
  return isFollowed && !(kex[0] === algorithms.kex[0] && hostKey[0] === algorithms.serverHostKey[0])
}

/** The library has read all of them, so they are there. */
function listAt(offer: Buffer, nth: number): string[] {
  let at = LISTS_AT
  for (let i = 0; i < nth; i++) at += 4 + offer.readUInt32BE(at)
  return offer.toString('latin1', at + 4, at + 4 + offer.readUInt32BE(at)).split(',')
}

function endOfLists(offer: Buffer): number {
  let at = LISTS_AT
  for (let i = 0; i < LISTS; i++) at += 4 + offer.readUInt32BE(at)
  return at
}
