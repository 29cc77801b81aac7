/** Metrics about certificates that were not uploaded: those that the server gets by itself, and those in files. */
import type { Registry } from '@prometheus-io/client'
import { byLabel, registerReadMetrics } from './read-metrics.ts'

/** The counts: names are counted for all nodes together, and results for this node. */
interface CertificateReads {
  readonly ordering: number
  readonly first: number
  readonly renewal: number
  readonly failing: number
  readonly ordersWithinHour: number
  readonly issued: number
  readonly failed: number
}

/** Adds the metrics of certificates in files. */
export function registerCertificateFiles(
  registry: Registry,
  read: () => { readonly served: number; readonly bad: number },
): void {
  const help = 'Certificates in `--certificate-dir`: `served`, and `bad` ones, which the log names.'
  const states = () => {
    const { served, bad } = read()
    return byLabel('state', { served, bad })
  }
  registerReadMetrics(registry, [{ name: 'postern_certificate_files', help, labels: ['state'], read: states }])
}

/** Adds the metrics of certificates that the server gets by itself. */
export function registerCertificates(registry: Registry, read: () => CertificateReads | undefined): void {
  registerReadMetrics(registry, [
    {
      name: 'postern_certificate_names',
      help: 'Names whose certificates the server gets by itself, by what is next: an order `ordering`, the `first` certificate, or a `renewal`.',
      labels: ['next'],
      read() {
        const { ordering = 0, first = 0, renewal = 0 } = read() ?? {}
        return byLabel('next', { ordering, first, renewal })
      },
    },
    {
      name: 'postern_certificate_names_failing',
      help: 'Names whose last try to get a certificate failed; each is retried. The log and the API say why.',
      read: () => read()?.failing ?? 0,
    },
    {
      name: 'postern_acme_orders_last_hour',
      help: 'Orders that all nodes started within the last hour; `--acme-orders-per-hour` limits them.',
      read: () => read()?.ordersWithinHour ?? 0,
    },
    {
      name: 'postern_acme_issued_total',
      help: 'Certificates that this node got from the certificate authority.',
      read: () => read()?.issued ?? 0,
    },
    {
      name: 'postern_acme_failures_total',
      help: 'Failed tries of this node to get a certificate; each is retried.',
      read: () => read()?.failed ?? 0,
    },
  ])
}
