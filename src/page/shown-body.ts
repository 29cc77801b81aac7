/** A body or frame as it is shown: decompressed where the API did so, else as it was sent. */
import type { ListedRow } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import { textIn } from './text-in.ts'

interface ShownBody {
  /** `text` or `base64`. */
  readonly encoding: string
  readonly content: string
  /** Whether nothing is missing. */
  readonly isWhole: boolean
  readonly unpacked: UnpackedFrom | undefined
}

export interface UnpackedFrom {
  readonly coding: string
  /** Of the decompressed content, in bytes. */
  readonly size: number
  /** Whether the content is truncated. */
  readonly isCut: boolean
}

export function shownBody({ size, kept, encoding, content, unpacked }: ListedRow): ShownBody {
  const isKept = size === kept
  if (!isRecord(unpacked)) {
    return { encoding: textIn(encoding), content: textIn(content), isWhole: isKept, unpacked: undefined }
  }
  const isCut = unpacked.is_cut === true
  return {
    encoding: textIn(unpacked.encoding ?? 'text'),
    content: textIn(unpacked.content),
    isWhole: isKept && !isCut,
    unpacked: { coding: textIn(unpacked.coding), size: Number(unpacked.size), isCut },
  }
}
