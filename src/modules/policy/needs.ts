/** How deep a policy looks into the traffic of its edge. */
import type { ModuleConfig, Needs } from '../module.ts'
import { BadExpression, parseExpression } from './cel.ts'
import { pieces } from './interpolation.ts'
import { type Source, sources } from './sources.ts'
import { children, type Expr, pathOf } from './tree.ts'

/**
 * the name a visitor asks for stands in the open, all else of `conn.tls` takes part in the handshake.
 * Asked of TLS edges; what a route does with requests needs no telling.
 */
export function policyNeeds(config: ModuleConfig): Needs {
  if (!config.enabled) return 'bytes'
  for (const source of sources(config, '')) {
    if (trees(source).some(readsTls)) return 'plaintext'
  }
  return 'bytes'
}

function trees(source: Source): readonly Expr[] {
  try {
    if (source.kind === 'pattern') return []
    if (source.kind !== 'template') return [parseExpression(source.text)]
    return pieces(source.text).flatMap((piece) => ('expression' in piece ? [parseExpression(piece.expression)] : []))
  } catch (error) {
    // What cannot be read cannot run, and is for `accept` to refuse.
    if (error instanceof BadExpression) return []
    throw error
  }
}

function readsTls(expr: Expr): boolean {
  const path = pathOf(expr)
  if (path === undefined) return children(expr).some(readsTls)
  // The whole of `conn` holds what is inside it.
  return path === 'conn' || path === 'conn.tls' || (path.startsWith('conn.tls.') && !/^conn\.tls\.sni\b/.test(path))
}
