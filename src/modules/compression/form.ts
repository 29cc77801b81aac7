/** The `compression` module: compresses responses to visitors. */
import { Type } from '../../lib/shape/type.ts'
import { enabled } from '../../model/fields.ts'
import { defineModule } from '../module.ts'

export interface CompressionSettings {
  /** The codings that may be used; all when left out. Unknown ones are ignored. */
  readonly algorithms?: readonly string[]
}

export const compression = defineModule({
  name: 'compression',
  about: 'Compresses responses that are not compressed yet, when the visitor accepts it.',
  at: { route: Type.Object({ enabled }, { additionalProperties: false }) },
  needs: () => 'http',
  resolve: (): CompressionSettings => ({}),
})
