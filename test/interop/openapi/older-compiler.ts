/**
 * Gives openapi-typescript the compiler that it was written for: it writes types through the compiler's syntax tree,
 * which TypeScript 7 does not offer to programs. Import this file before openapi-typescript.
 */
import { registerHooks } from 'node:module'

registerHooks({
  resolve: (specifier, context, next) => {
    const isTheirs = specifier === 'typescript' && context.parentURL?.includes('/openapi-typescript/')
    return next(isTheirs ? 'typescript5' : specifier, context)
  },
})
