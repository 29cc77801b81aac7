/** The `compression` module: compresses responses to visitors. */
import { defineModule, moduleForm } from '../module.ts'

export interface CompressionSettings {
  /** The codings that may be used; all when left out. Unknown ones are ignored. */
  readonly algorithms?: readonly string[]
}

export const compression = defineModule({
  name: 'compression',
  about: 'Compresses responses that are not compressed yet, when the visitor accepts it.',
  at: { route: moduleForm({}) },
  needs: () => 'http',
  resolve: (): CompressionSettings => ({}),
})
