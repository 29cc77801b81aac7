/**
 * Gives openapi-typescript the compiler that it is written for: it writes types with the compiler's own tree, which
 * TypeScript 7 does not offer to programs. To be imported before it.
 */
import { registerHooks } from 'node:module'

registerHooks({
  resolve: (specifier, context, next) => {
    const isTheirs = specifier === 'typescript' && context.parentURL?.includes('/openapi-typescript/')
    return next(isTheirs ? 'typescript5' : specifier, context)
  },
})
