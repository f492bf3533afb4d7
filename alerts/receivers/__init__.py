"""Where alerts are delivered: one module for each kind of receiver.

A receiver makes one attempt and says how it went; when to try again is the notifier's business.
"""
