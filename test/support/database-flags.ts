/** The flags of a server for its database. On PostgreSQL other nodes reach it, at a free port. */
export function databaseFlags(databaseUrl: string): Record<string, string> {
  const isShared = databaseUrl.startsWith('postgres')
  return { 'database-url': databaseUrl, ...(isShared && { 'cluster-listen': '127.0.0.1:0' }) }
}
