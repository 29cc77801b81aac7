/** Limits on the texts of a tunnel. */

import { refusals } from '../../model/agent-errors.ts'
import type { BindRefusal } from './interfaces.ts'

/** Tunnels of one session. */
export const MAX_TUNNELS = 1000

/** As for every resource (contract part 8), in bytes. */
export const MAX_METADATA_BYTES = 4096
const MAX_DESCRIPTION_BYTES = 255
const MAX_NAME_BYTES = 255

/** Longest forwarding address as sent by an agent, in bytes; it may hold the path of a program. */
const MAX_FORWARDS_TO_BYTES = 4096

type Texts = Readonly<Partial<Record<'metadata' | 'description' | 'name' | 'forwardsTo', string | null>>>

/** Refuses texts that are too long. */
export function boundTexts({ metadata, description, name, forwardsTo }: Texts): BindRefusal | undefined {
  const texts = [
    ['metadata', metadata, MAX_METADATA_BYTES],
    ['description', description, MAX_DESCRIPTION_BYTES],
    ['name', name, MAX_NAME_BYTES],
    ['forwarding address', forwardsTo, MAX_FORWARDS_TO_BYTES],
  ] as const
  for (const [what, text, max] of texts) {
    if (Buffer.byteLength(text ?? '') > max) return refusals.bindInvalid(`its ${what} is longer than ${max} bytes`)
  }
  return undefined
}
