"""The audit trail's pages."""

from django.urls import path

from approvals.audit import views

urlpatterns = [
    path("audit/", views.audit_list, name="audit"),
    path("audit/export/", views.audit_export, name="audit-export"),
]
