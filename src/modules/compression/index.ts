/** The `compression` module: compresses responses to visitors. */
import { Type } from '../../lib/shape/type.ts'
import { enabled } from '../../model/fields.ts'
import { defineModule } from '../module.ts'
import { type CompressionSettings, compileCompression } from './traffic.ts'

export const compression = defineModule({
  name: 'compression',
  about: 'Compresses responses that are not compressed yet, when the visitor accepts it.',
  at: { route: Type.Object({ enabled }, { additionalProperties: false }) },
  needs: () => 'http',
  resolve: (): CompressionSettings => ({}),
  compile: compileCompression,
})
