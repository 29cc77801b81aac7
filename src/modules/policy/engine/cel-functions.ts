/** All functions of expressions that we implement ourselves, in one table; the CEL library provides the others. */
import { conversions } from './conversions.ts'
import { encodings } from './encodings.ts'
import type { Impls } from './evaluation-frame.ts'
import { listFunctions } from './list-functions.ts'
import { operators } from './operators.ts'
import { Networks, requestFunctions } from './request-functions.ts'
import { textFunctions } from './text-functions.ts'
import { timeFunctions, Zones } from './times.ts'

export function ownFunctions(): Impls {
  return {
    ...operators,
    ...conversions,
    ...textFunctions,
    ...listFunctions,
    ...encodings,
    ...requestFunctions(new Networks()),
    ...timeFunctions(new Zones()),
  }
}
