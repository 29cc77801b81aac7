/** Where an edge module can hang, and where its configuration was written. */

export type Place = 'tcp' | 'tls' | 'https' | 'route'

/**
 * Where a configuration is written. `at` stands before each field named in a message: empty for the module's own PUT,
 * `policy.` inside the body of an edge.
 */
export interface Where {
  readonly place: Place
  readonly at: string
}
