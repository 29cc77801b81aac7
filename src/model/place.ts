/** Where a module can stand, and where its configuration was given. */

export type Place = 'tcp' | 'tls' | 'https' | 'route'

/**
 * Where a configuration was given. Messages put `at` before each field name: empty for the module's own PUT, `policy.`
 * inside the body of an edge.
 */
export interface Where {
  readonly place: Place
  readonly at: string
}
