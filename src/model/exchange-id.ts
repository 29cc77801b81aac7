/**
 * Ids of exchanges: they tell when an exchange ended and which data plane of which node has it, so that none has to be
 * drawn or kept while traffic passes. They sort by time, as all ids do.
 */
import { createHash } from 'node:crypto'
import { ID_BYTES, idBytes, idText } from '../lib/ids.ts'

export const EXCHANGE_PREFIX = 'ex_'

export interface ExchangeId {
  /** When it ended, in milliseconds since 1970. */
  readonly endedAt: number
  /** Its number at its data plane. */
  readonly number: number
  /** Of its node and plane; see `tagOf`. */
  readonly nodeTag: string
  readonly planeTag: string
}

/** Characters of a tag, as hexadecimal digits. */
const TAG_CHARACTERS = 8

/** What an id holds of the id of a node or plane. Two may be alike, so whoever has the tag may not have the exchange. */
export function tagOf(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, TAG_CHARACTERS)
}

export function exchangeId({ endedAt, number, nodeTag, planeTag }: ExchangeId): string {
  const bytes = Buffer.alloc(ID_BYTES)
  bytes.writeUIntBE(endedAt, 0, 6)
  bytes.writeUIntBE(number, 6, 6)
  bytes.write(nodeTag + planeTag, 12, 'hex')
  return EXCHANGE_PREFIX + idText(bytes)
}

/** Undefined for a text that is no id of an exchange. */
export function readExchangeId(id: string): ExchangeId | undefined {
  const bytes = id.startsWith(EXCHANGE_PREFIX) ? idBytes(id.slice(EXCHANGE_PREFIX.length)) : undefined
  if (!bytes) return undefined
  return {
    endedAt: bytes.readUIntBE(0, 6),
    number: bytes.readUIntBE(6, 6),
    nodeTag: bytes.toString('hex', 12, 16),
    planeTag: bytes.toString('hex', 16, 20),
  }
}
