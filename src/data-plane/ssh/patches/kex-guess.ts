/** Handles guessed packets: a client may send its first key exchange packet before the algorithms are agreed on (RFC 4253 §7). */
import type { Protocol } from 'ssh2'
import { algorithms } from '../algorithms.ts'

/** Where the lists begin: after the message type and 16 random bytes. */
const LISTS_AT = 17
const LISTS = 10

/**
 * Makes the connection handle guessed packets; call it before the first packet is read. A packet whose guess is right counts, and
 * any other is ignored. The library ignores every guessed packet, so that dropbear would wait for ever.
 */
export function handleGuesses(protocol: Protocol): void {
  let isGuess = false
  Object.defineProperty(protocol, '_skipNextInboundPacket', {
    set: (value: boolean) => {
      isGuess = value
    },
    // The library reads this for each packet of a key exchange.
    get: () => isGuess && isWrongGuess(protocol._kex._remoteKexinit),
  })
}

/** A guess is right if the client's first choices of key exchange and host key are ours too. */
function isWrongGuess(offer: Buffer): boolean {
  const [kex, hostKey] = [listAt(offer, 0), listAt(offer, 1)]
  const isFollowed = offer[endOfLists(offer)] === 1
  return isFollowed && !(kex[0] === algorithms.kex[0] && hostKey[0] === algorithms.serverHostKey[0])
}

/** The library has parsed the offer before, so the lists are complete. */
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
