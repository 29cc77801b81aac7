/** Ids of exchanges: each says when the exchange ended, and which data plane of which node has it. */
import { createHash } from 'node:crypto'
import { ID_BYTES, idBytes, idText } from '../lib/ids.ts'

const EXCHANGE_PREFIX = 'ex_'

/** The contents of an id, so that no id has to be drawn or stored while traffic passes. Ids sort by time, as all ids do. */
export interface ExchangeId {
  /** When it ended, in milliseconds since 1970. */
  readonly endedAt: number
  /** Its number at its data plane. */
  readonly number: number
  /** The tags of its node and plane; see `tagOf`. */
  readonly nodeTag: string
  readonly planeTag: string
}

/** Hexadecimal digits of a tag. */
const TAG_CHARACTERS = 8

/** Shortens the id of a node or plane. Two may get the same tag, so a match does not prove who has the exchange. */
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

/** Undefined for a text that is not an exchange id. */
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
